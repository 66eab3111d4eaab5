package observers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

const aSecret = "tenwalls-a-secret-of-this-run"

func secretsHere(t *testing.T, secrets ...string) *Secrets {
	t.Helper()
	s, err := NewSecrets(Host{Temp: t.TempDir()}, append(secrets, aSecret))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSecretsAreLongEnoughToBeTold(t *testing.T) {
	g := NewWithT(t)
	_, err := NewSecrets(Host{}, nil)
	g.Expect(err).To(MatchError(ContainSubstring("there is none")))
	_, err = NewSecrets(Host{}, []string{aSecret, "fifteen bytes.."})
	g.Expect(err).To(MatchError(ContainSubstring("too short")))
	_, err = NewSecrets(Host{}, []string{strings.Repeat("x", maxSecret+1)})
	g.Expect(err).To(MatchError(ContainSubstring("longer than 65536 bytes")))
	_, err = NewSecrets(Host{}, []string{"sixteen bytes...", strings.Repeat("x", maxSecret)})
	g.Expect(err).NotTo(HaveOccurred())
}

// watched looks through a scratch folder that make filled.
func watched(t *testing.T, s *Secrets, fill func(dir string)) Observation {
	t.Helper()
	dir := t.TempDir()
	fill(dir)
	w, err := s.Watch(t.Context(), Subject{Place: "here", Scratch: dir})
	if err != nil {
		t.Fatal(err)
	}
	w.Sample()
	w.Ended()
	return w.Stored()
}

func TestSecretsInScratch(t *testing.T) {
	g := NewWithT(t)
	long := strings.Repeat("x", 500)
	obs := watched(t, secretsHere(t, long), func(dir string) {
		plant(t, dir, map[string]string{
			"innocent":      "nothing",
			"cut":           aSecret[:len(aSecret)-1],
			"plain":         "a" + aSecret + "b",
			"deep/er/plain": aSecret,
			"across":        strings.Repeat(".", readSize-len(aSecret)/2) + aSecret,
			"across, long":  strings.Repeat(".", readSize-250) + long,
			"early":         aSecret + strings.Repeat(".", 3*readSize),
			"late":          strings.Repeat(".", 3*readSize) + aSecret,
			"link":          "-> /dev/zero", // never followed
			"dir link":      "-> deep",
		})
		g.Expect(unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600)).To(Succeed()) // never opened
	})
	g.Expect(obs.Lost).To(BeEmpty())
	g.Expect(obs.Samples).To(Equal(1))
	var want []string
	for _, name := range []string{"across", "across, long", "deep/er/plain", "early", "late", "plain"} {
		want = append(want, "a secret of this run stands in scratch: "+name)
	}
	g.Expect(obs.Found).To(ConsistOf(want))
	g.Expect(obs.Values["found"]).To(Equal(Reading{Worst: 6, After: 6, Unit: "count"}))
	size := int64(8*readSize + 3*len(aSecret) - 250 + 500 + len("nothing") + len(aSecret) - 1 + len(aSecret) + 2 + (len(aSecret) - len(aSecret)/2))
	g.Expect(obs.Values["bytes"].After).To(Equal(size))
}

// What the harness was handed belongs to the place that produced it.
func TestSecretsInOutput(t *testing.T) {
	g := NewWithT(t)
	s := secretsHere(t)
	s.Saw("here", "standard output", []byte("...\n"+aSecret))
	s.Saw("here", "standard error", []byte("nothing"))
	s.Saw("elsewhere", "artifact a", []byte(aSecret))
	obs := watched(t, s, func(string) {})
	g.Expect(obs.Found).To(Equal([]string{"a secret of this run stands in standard output"}))
	g.Expect(obs.Values["found"].After).To(BeEquivalentTo(1))
}

// A job without scratch has nothing to read there, and was looked at.
func TestSecretsWithoutScratch(t *testing.T) {
	g := NewWithT(t)
	w, err := secretsHere(t).Watch(t.Context(), Subject{})
	g.Expect(err).NotTo(HaveOccurred())
	w.Ended()
	obs := w.Stored()
	g.Expect(obs.Lost).To(BeEmpty())
	g.Expect(obs.Samples).To(Equal(1))
	g.Expect(obs.Values["bytes"].After).To(BeZero())
}

func TestSecretsSayWhatTheyLost(t *testing.T) {
	g := NewWithT(t)
	w, err := secretsHere(t).Watch(t.Context(), Subject{Scratch: filepath.Join(t.TempDir(), "gone")})
	g.Expect(err).NotTo(HaveOccurred())
	w.Ended()
	g.Expect(w.Stored().Lost).To(ContainSubstring("read scratch"))

	// Sparse, so that it takes no room here; reading is what is bounded.
	obs := watched(t, secretsHere(t), func(dir string) {
		name := filepath.Join(dir, "endless")
		g.Expect(os.WriteFile(name, nil, 0o600)).To(Succeed())
		g.Expect(os.Truncate(name, maxScratchRead+1)).To(Succeed())
	})
	g.Expect(obs.Lost).To(ContainSubstring("more than 268435456 bytes"))

	// Nobody looked: no value is a zero.
	w, err = secretsHere(t).Watch(t.Context(), Subject{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.Stored().Samples).To(BeZero())
}

func TestSecretsControl(t *testing.T) {
	g := NewWithT(t)
	temp := t.TempDir()
	s, err := NewSecrets(Host{Temp: temp}, []string{aSecret})
	g.Expect(err).NotTo(HaveOccurred())
	c := s.Control(t.Context())
	g.Expect(c.Passed).To(BeTrue(), c.Reason)
	g.Expect(os.ReadDir(temp)).To(BeEmpty(), "it removes what it made")
	// Eyes that see a secret everywhere.
	s.secrets = append(s.secrets, []byte("nothing"))
	c = s.Control(t.Context())
	g.Expect(c.Passed).To(BeFalse())
	g.Expect(c.Reason).To(ContainSubstring("not found as placed"))
	s.temp = filepath.Join(temp, "gone")
	g.Expect(s.Control(t.Context()).Passed).To(BeFalse())
}
