//go:build privileged

package observers

import (
	"context"
	"os"
	"testing"
)

// Other controls open and remove files of their own at the same moment.
func TestMountsControlBesideFilesThatAreRemoved(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	gone := make(chan struct{})
	dir := t.TempDir()
	go func() {
		defer close(gone)
		for ctx.Err() == nil {
			f, err := os.CreateTemp(dir, "beside-")
			if err != nil {
				t.Error(err)
				return
			}
			os.Remove(f.Name())
			f.Close()
		}
	}()
	bad := 0
	var last string
	for range 200 {
		if c := NewMounts(Local()).Control(ctx); !c.Passed {
			bad++
			last = c.Seen + " " + c.Reason
		}
	}
	stop()
	<-gone
	if bad > 0 {
		t.Errorf("%d of 200 controls failed, the last: %s", bad, last)
	}
}
