package sandbox

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"tenwalls.dev/harness/sandbox/evidence"
	"tenwalls.dev/harness/sandbox/id"
)

const image = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func reference(content string) evidence.Ref {
	return evidence.Ref{
		ID:        id.New("art"),
		Digest:    evidence.Digest([]byte(content)),
		Size:      int64(len(content)),
		MediaType: "text/plain",
		Producer:  "test",
		Source:    "fixture",
	}
}

// draft returns a job that uses every field and breaks no rule.
func draft() Job {
	l := DenyAllLimits()
	l.ArtifactBytes = 4096
	return Job{
		SchemaVersion: SchemaVersion,
		ID:            id.New(PrefixJob),
		Key:           "course-7/submission-12",
		Scope:         Scope{Tenant: "school", Project: "grading"},
		Principal:     "grader",
		Image:         image,
		Argv:          []string{"/bin/check", "--strict", "", "two\nlines"},
		Inputs: []Input{
			{Path: "submission/main.py", Ref: reference("print()")},
			{Path: "answers.json", Ref: reference("{}")},
		},
		Outputs: []Output{
			{ID: id.New("art"), Path: "verdict.json", MediaType: "application/json", MaxBytes: 4096},
			{ID: id.New("art"), Path: "logs/all.txt", MediaType: "text/plain", MaxBytes: 1},
		},
		Env:     map[string]string{"LANG": "C.UTF-8", "EMPTY": "", "<&>": "\u2028"},
		Network: NetworkDenied,
		Limits:  l,
	}
}

func seal(t testing.TB, j Job) Job {
	t.Helper()
	sealed, err := Seal(j)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestSealRules(t *testing.T) {
	many := func(n int) []string { return append([]string{"a"}, make([]string, n-1)...) }
	for _, c := range []struct {
		name string
		edit func(*Job)
		ok   bool
	}{
		{"every field", func(*Job) {}, true},
		{"no inputs, outputs or environment", func(j *Job) { j.Inputs, j.Outputs, j.Env = nil, nil, nil }, true},
		{"no capture", func(j *Job) { j.Outputs, j.Limits.ArtifactBytes = nil, 0 }, true},
		{"same artifact at two paths", func(j *Job) { j.Inputs[1].Ref = j.Inputs[0].Ref }, true},
		{"longest key", func(j *Job) { j.Key = strings.Repeat("k", 255) }, true},
		{"most arguments", func(j *Job) { j.Argv = many(4096) }, true},
		{"longest argument", func(j *Job) { j.Argv[1] = strings.Repeat("a", 1<<17-1) }, true},

		{"schema zero", func(j *Job) { j.SchemaVersion = 0 }, false},
		{"schema two", func(j *Job) { j.SchemaVersion = 2 }, false},
		{"no id", func(j *Job) { j.ID = "" }, false},
		{"id without a suffix", func(j *Job) { j.ID = "sjob_x" }, false},
		{"id of another kind", func(j *Job) { j.ID = id.New("art") }, false},
		{"no key", func(j *Job) { j.Key = "" }, false},
		{"long key", func(j *Job) { j.Key = strings.Repeat("k", 256) }, false},
		{"escape in key", func(j *Job) { j.Key = "a\x1b[2J" }, false},
		{"no tenant", func(j *Job) { j.Scope.Tenant = "" }, false},
		{"no project", func(j *Job) { j.Scope.Project = "" }, false},
		{"no principal", func(j *Job) { j.Principal = "" }, false},
		{"long principal", func(j *Job) { j.Principal = strings.Repeat("p", 256) }, false},
		{"no image", func(j *Job) { j.Image = "" }, false},
		{"image by tag", func(j *Job) { j.Image = "debian:stable" }, false},
		{"image by name and digest", func(j *Job) { j.Image = "debian@" + image }, false},
		{"image with short digest", func(j *Job) { j.Image = image[:70] }, false},
		{"no argv", func(j *Job) { j.Argv = nil }, false},
		{"no program", func(j *Job) { j.Argv[0] = "" }, false},
		{"NUL in argv", func(j *Job) { j.Argv[1] = "a\x00b" }, false},
		{"argv not UTF-8", func(j *Job) { j.Argv[1] = "a\xff" }, false},
		{"too many arguments", func(j *Job) { j.Argv = many(4097) }, false},
		{"argument too long", func(j *Job) { j.Argv[1] = strings.Repeat("a", 1<<17) }, false},
		{"arguments too long together", func(j *Job) {
			for range 9 {
				j.Argv = append(j.Argv, strings.Repeat("a", 1<<17-1))
			}
		}, false},
		{"empty env name", func(j *Job) { j.Env[""] = "x" }, false},
		{"equals sign in env name", func(j *Job) { j.Env["A=B"] = "x" }, false},
		{"NUL in env name", func(j *Job) { j.Env["A\x00"] = "x" }, false},
		{"env name too long", func(j *Job) { j.Env[strings.Repeat("A", 256)] = "x" }, false},
		{"NUL in env value", func(j *Job) { j.Env["A"] = "\x00" }, false},
		{"env value not UTF-8", func(j *Job) { j.Env["A"] = "\xff" }, false},
		{"env value too long", func(j *Job) { j.Env["A"] = strings.Repeat("a", 1<<17) }, false},
		{"too many env variables", func(j *Job) {
			for i := range 4097 {
				j.Env["A"+strconv.Itoa(i)] = ""
			}
		}, false},
		{"no network profile", func(j *Job) { j.Network = "" }, false},
		{"other network profile", func(j *Job) { j.Network = "host" }, false},
		{"no limits", func(j *Job) { j.Limits = Limits{} }, false},
		{"negative limit", func(j *Job) { j.Limits.Processes = -1 }, false},
		{"infinite limit", func(j *Job) { j.Limits.MemoryBytes = 1 << 53 }, false},
		{"input path leads out", func(j *Job) { j.Inputs[0].Path = "../etc/passwd" }, false},
		{"input path twice", func(j *Job) { j.Inputs[1].Path = j.Inputs[0].Path }, false},
		{"input needs an input as folder", func(j *Job) { j.Inputs[1].Path = "submission" }, false},
		{"input reference without digest", func(j *Job) { j.Inputs[0].Ref.Digest = "" }, false},
		{"too many inputs", func(j *Job) {
			for i := range 1024 {
				j.Inputs = append(j.Inputs, Input{Path: "f" + strconv.Itoa(i), Ref: j.Inputs[0].Ref})
			}
		}, false},
		{"output path leads out", func(j *Job) { j.Outputs[0].Path = "/inputs/x" }, false},
		{"output path twice", func(j *Job) { j.Outputs[1].Path = j.Outputs[0].Path }, false},
		{"output needs an output as folder", func(j *Job) { j.Outputs[0].Path = "logs" }, false},
		{"output without id", func(j *Job) { j.Outputs[0].ID = "" }, false},
		{"output id twice", func(j *Job) { j.Outputs[1].ID = j.Outputs[0].ID }, false},
		{"output id is an input's", func(j *Job) { j.Outputs[0].ID = j.Inputs[0].Ref.ID }, false},
		{"output id is the job's", func(j *Job) { j.Outputs[0].ID = j.ID }, false},
		{"output without media type", func(j *Job) { j.Outputs[0].MediaType = "" }, false},
		{"output of zero bytes", func(j *Job) { j.Outputs[0].MaxBytes = 0 }, false},
		{"output of negative bytes", func(j *Job) { j.Outputs[0].MaxBytes = -1 }, false},
		{"output above the artifact limit", func(j *Job) { j.Outputs[0].MaxBytes = 4097 }, false},
		{"outputs without capture", func(j *Job) { j.Limits.ArtifactBytes = 0 }, false},
		{"too many outputs", func(j *Job) {
			for i := range 1024 {
				j.Outputs = append(j.Outputs, Output{ID: id.New("art"), Path: "f" + strconv.Itoa(i), MediaType: "text/plain", MaxBytes: 1})
			}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := draft()
			c.edit(&j)
			sealed, err := Seal(j)
			if (err == nil) != c.ok {
				t.Fatalf("Seal() = %v, want ok %v", err, c.ok)
			}
			if c.ok {
				if err := sealed.Validate(); err != nil {
					t.Error(err)
				}
				return
			}
			if !reflect.DeepEqual(sealed, Job{}) {
				t.Error("a refused job is returned")
			}
			// Anyone can compute a digest: a fitting one must not carry a
			// job past the rules.
			if j.Digest, err = j.digest(); err != nil {
				return // cannot be written as canonical JSON at all
			}
			if err := j.Validate(); err == nil || errors.Is(err, ErrMutated) {
				t.Errorf("Validate() of the refused job with a fitting digest = %v", err)
			}
		})
	}
}

// TestSealNamesTheField holds where canonical JSON would refuse the job anyway,
// without knowing where.
func TestSealNamesTheField(t *testing.T) {
	for want, edit := range map[string]func(*Job){
		"argv[1]: not valid UTF-8":    func(j *Job) { j.Argv[1] = "\xff" },
		`env "LANG": not valid UTF-8`: func(j *Job) { j.Env["LANG"] = "\xff" },
		"limits: memory_bytes":        func(j *Job) { j.Limits.MemoryBytes = 1 << 60 },
	} {
		j := draft()
		edit(&j)
		if _, err := Seal(j); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Seal() = %v, want %s", err, want)
		}
	}
}

func TestSealDetaches(t *testing.T) {
	j := draft()
	sealed := seal(t, j)
	j.Argv[0] = "/bin/evil"
	j.Inputs[0].Path = "other"
	j.Outputs[0].MaxBytes = 1
	j.Env["LANG"] = "changed"
	if err := sealed.Validate(); err != nil {
		t.Errorf("the draft reaches into the sealed job: %v", err)
	}
}

func TestSealReplacesDigest(t *testing.T) {
	j := draft()
	first := seal(t, j)
	j.Digest = "sha256:made-up"
	if second := seal(t, j); second.Digest != first.Digest {
		t.Errorf("digest depends on an earlier one: %s and %s", first.Digest, second.Digest)
	}
}

func TestSealedJobSurvivesJSON(t *testing.T) {
	bare := draft()
	bare.Inputs, bare.Outputs, bare.Env = []Input{}, []Output{}, map[string]string{}
	for name, j := range map[string]Job{"every field": draft(), "empty collections": bare} {
		sealed := seal(t, j)
		data, err := json.Marshal(sealed)
		if err != nil {
			t.Fatal(err)
		}
		var back Job
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, sealed) {
			t.Errorf("%s: %+v became %+v", name, sealed, back)
		}
		if err := back.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestValidateDetectsEveryField changes each field to another value that is
// just as valid, by reflection, so that a field added later is covered.
func TestValidateDetectsEveryField(t *testing.T) {
	leaves := 0
	var visit func(t *testing.T, v reflect.Value, path string, job *Job)
	visit = func(t *testing.T, v reflect.Value, path string, job *Job) {
		check := func(change, restore func()) {
			leaves++
			change()
			if err := job.Validate(); !errors.Is(err, ErrMutated) {
				t.Errorf("%s: changed, and Validate() = %v", path, err)
			}
			restore()
		}
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				visit(t, v.Field(i), path+"."+v.Type().Field(i).Name, job)
			}
		case reflect.Slice:
			for i := range v.Len() {
				visit(t, v.Index(i), path+"["+strconv.Itoa(i)+"]", job)
			}
			whole := reflect.ValueOf(v.Interface())
			check(func() { v.Set(whole.Slice(0, whole.Len()-1)) }, func() { v.Set(whole) })
		case reflect.Map:
			key, value := reflect.ValueOf("LANG"), reflect.ValueOf("C.UTF-8")
			check(func() { v.SetMapIndex(key, reflect.ValueOf("C")) }, func() { v.SetMapIndex(key, value) })
			check(func() { v.SetMapIndex(key, reflect.Value{}) }, func() { v.SetMapIndex(key, value) })
		case reflect.String:
			old := v.String()
			check(func() { v.SetString(old + "0") }, func() { v.SetString(old) })
		case reflect.Int, reflect.Int64:
			old := v.Int()
			check(func() { v.SetInt(old - 1) }, func() { v.SetInt(old) })
		default:
			t.Fatalf("%s: no change known for a %s", path, v.Kind())
		}
	}
	job := seal(t, draft())
	visit(t, reflect.ValueOf(&job).Elem(), "Job", &job)
	if err := job.Validate(); err != nil || leaves < 40 {
		t.Errorf("%d fields changed and restored, and Validate() = %v", leaves, err)
	}
}

func TestValidateUnsealed(t *testing.T) {
	if err := draft().Validate(); !errors.Is(err, ErrMutated) {
		t.Errorf("Validate() of a job without a seal = %v", err)
	}
	j := seal(t, draft())
	j.Limits.WallTime = 1<<62 - 1 + time.Nanosecond
	if err := j.Validate(); !errors.Is(err, ErrMutated) {
		t.Errorf("Validate() of a job that canonical JSON cannot carry = %v", err)
	}
}
