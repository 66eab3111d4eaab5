package act

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/observers"
)

// sayAct prints its arguments and ends with a code of its own.
const sayAct = "test-say"

func TestMain(m *testing.M) {
	Register(sayAct, func(args []string) int {
		fmt.Printf("%d %q %q\n", os.Getpid(), args, os.Environ())
		return 7
	})
	Main() // returns: a test is no act
	os.Exit(m.Run())
}

func TestRegisterOnce(t *testing.T) {
	g := NewWithT(t)
	g.Expect(func() { Register(sayAct, func([]string) int { return 0 }) }).To(PanicWith(ContainSubstring(sayAct)))
}

func TestCommandPerformsTheAct(t *testing.T) {
	g := NewWithT(t)
	cmd := Command(sayAct, "one", "two words")
	var out strings.Builder
	cmd.Stdout = &out
	g.Expect(cmd.Run()).To(MatchError("exit status 7"))
	// Nothing of the environment that the harness was started in goes along, and
	// the collector is off, so that a control's memory is what it says.
	g.Expect(out.String()).To(Equal(fmt.Sprintf("%d %q %q\n", cmd.Process.Pid, []string{"one", "two words"}, []string{"GOGC=off", "GOMAXPROCS=1"})))
}

// A signal to the harness's own group, as a terminal sends it, does not end what
// the harness ends itself.
func TestCommandLeadsAGroupOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	p, err := Spawner{}.Spawn(t.Context(), observers.Child{Act: observers.ActSleep})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		_ = p.Kill()
		_, _ = p.Wait()
	})
	g.Expect(syscall.Getpgid(p.Pid)).To(Equal(p.Pid))
}

// The acts of package observers need no registering, and a word that is none is
// an error of its own.
func TestActsOfTheObservers(t *testing.T) {
	g := NewWithT(t)
	for word, code := range map[string]int{observers.ActNothing: 0, observers.ActSpin: 0, "no-such-act": 2} {
		p, err := Spawner{}.Spawn(t.Context(), observers.Child{Act: word})
		g.Expect(err).NotTo(HaveOccurred())
		state, err := p.Wait()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(state.ExitCode()).To(Equal(code), word)
	}
}

func TestSpawnMarksAndConnects(t *testing.T) {
	g := NewWithT(t)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	g.Expect(err).NotTo(HaveOccurred())
	in, ours := os.NewFile(uintptr(pair[0]), "theirs"), os.NewFile(uintptr(pair[1]), "ours")
	t.Cleanup(func() { ours.Close() })
	p, err := Spawner{}.Spawn(t.Context(), observers.Child{Act: observers.ActEcho, Name: "another-name", Args: []string{"control-mark", "--flag"}, Stdio: in})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		_ = p.Kill()
		_, _ = p.Wait()
	})
	g.Expect(in.Close()).To(Succeed())
	g.Eventually(func() ([]byte, error) { return os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid)) }).
		Should(BeEquivalentTo("another-name\x00" + word + "\x00" + observers.ActEcho + "\x00control-mark\x00--flag\x00"))
	_, err = ours.WriteString("x")
	g.Expect(err).NotTo(HaveOccurred())
	echo := []byte{0}
	g.Expect(ours.Read(echo)).To(Equal(1))
	g.Expect(string(echo)).To(Equal("x"))
	g.Expect(ours.Close()).To(Succeed()) // its descriptor 0 ends, and so does it
	state, err := p.Wait()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.Success()).To(BeTrue())
}

func TestSpawnInACgroup(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(root, "cgroup.controllers"), []byte("memory pids\n"), 0o600)).To(Succeed())
	// Paths that no cgroup has tell which one was asked for.
	s := Spawner{Host: observers.Host{Cgroup: root}, Default: "the default"}
	_, err := s.Spawn(t.Context(), observers.Child{Act: observers.ActSleep})
	g.Expect(err).To(MatchError(And(ContainSubstring(`"the default"`), ContainSubstring("start sleep for a control"))))
	_, err = s.Spawn(t.Context(), observers.Child{Act: observers.ActSleep, Cgroup: "its own"})
	g.Expect(err).To(MatchError(ContainSubstring(`"its own"`)))
}

func TestSpawnAfterTheEnd(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, err := Spawner{}.Spawn(ctx, observers.Child{Act: observers.ActSleep})
	if p != nil {
		t.Cleanup(func() {
			_ = p.Kill()
			_, _ = p.Wait()
		})
	}
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(p).To(BeNil())
}
