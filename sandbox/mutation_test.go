package sandbox

import (
	"encoding/json"
	"reflect"
	"testing"
)

// checkMutation fails the test when edited bytes are taken for the sealed job
// and say something else. Edits that change nothing that is said, for example
// the case of a field's name, may pass.
func checkMutation(t *testing.T, sealed Job, edited []byte) (passed bool) {
	t.Helper()
	var got Job
	if json.Unmarshal(edited, &got) != nil || got.Validate() != nil {
		return false
	}
	if !reflect.DeepEqual(got.detach(), sealed) {
		t.Fatalf("not detected: %s", edited)
	}
	return true
}

// TestEveryByteOfASealedJob flips each bit of each byte.
func TestEveryByteOfASealedJob(t *testing.T) {
	sealed := seal(t, draft())
	data, err := json.Marshal(sealed)
	if err != nil {
		t.Fatal(err)
	}
	passed := 0
	for at := range data {
		for bit := range 8 {
			data[at] ^= 1 << bit
			if checkMutation(t, sealed, data) {
				passed++
			}
			data[at] ^= 1 << bit
		}
	}
	if !checkMutation(t, sealed, data) {
		t.Fatal("the unchanged job does not pass")
	}
	t.Logf("%d of %d flips said the same job in other bytes", passed, 8*len(data))
}

// FuzzSealedJobMutation replaces a stretch of a sealed job's JSON.
func FuzzSealedJobMutation(f *testing.F) {
	sealed := seal(f, draft())
	data, err := json.Marshal(sealed)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint16(0), uint16(0), []byte(nil))
	f.Add(uint16(1), uint16(0), []byte(`"network":"host",`))
	f.Add(uint16(1), uint16(0), []byte(`"KEY":"other",`))
	f.Add(uint16(len(data)-1), uint16(0), []byte(`,"env":{"LD_PRELOAD":"x"}`))
	f.Add(uint16(len(data)-1), uint16(0), []byte(`,"limits":{"artifact_bytes":1}`))
	f.Add(uint16(len(data)-1), uint16(0), []byte(`,"argv":null`))
	f.Fuzz(func(t *testing.T, at, length uint16, replacement []byte) {
		from := int(at) % (len(data) + 1)
		to := min(from+int(length), len(data))
		edited := append([]byte(nil), data[:from]...)
		edited = append(edited, replacement...)
		edited = append(edited, data[to:]...)
		checkMutation(t, sealed, edited)
	})
}
