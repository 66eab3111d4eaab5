package observers

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel says EACCES of a link of a process that was there when its folder
// was looked up and is gone now. Of one that lives that is an error.
func TestProcessGoneByEACCES(t *testing.T) {
	h := Host{Proc: "/proc"}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{actVar + "=" + ActSleep}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	proc := strconv.Itoa(cmd.Process.Pid)
	link, err := unix.Open("/proc/"+proc+"/ns/mnt", unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	kill := errors.Join(cmd.Process.Kill(), reaped(cmd.Wait()))
	if err != nil || kill != nil {
		t.Fatal(err, kill)
	}
	defer unix.Close(link)
	_, err = unix.Readlinkat(link, "", make([]byte, 64))
	if !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("the kernel says %v of a process that is gone", err)
	}
	if !processGone(h, proc, err) {
		t.Errorf("%v of a process that is gone is an error", err)
	}
	if processGone(h, "self", &os.PathError{Op: "readlink", Path: "/proc/self/ns/mnt", Err: unix.EACCES}) {
		t.Error("EACCES of a process that lives says that it is gone")
	}
}

// reaped drops how a child ended that was killed on purpose.
func reaped(err error) error {
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return nil
	}
	return err
}
