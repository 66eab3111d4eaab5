package observers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Control gives one thread of the harness a folder that no grant names, once as
// a bind mount and once as an open descriptor, and looks at that thread with
// the scan that looks at jobs. It passes when the scan finds exactly these two
// beyond what it found before.
//
// The thread has a mount namespace and a descriptor table of its own and ends
// with the control, so nothing stays behind, also after a crash, apart from a
// folder in [Host.Temp].
func (o *Mounts) Control(ctx context.Context) (c Control) {
	c = Control{
		Observer: o.Name(),
		Effect:   "one thread mounts and opens a folder that wasn't granted",
		Want:     "exactly one more foreign mount and one more foreign folder, by name",
	}
	folder, err := os.MkdirTemp(o.host.Temp, "tenwalls-mounts-")
	if err != nil {
		c.Reason = fmt.Sprintf("make control folder: %v", err)
		return c
	}
	defer func() {
		if err := os.RemoveAll(folder); err != nil && c.Reason == "" {
			c.Passed, c.Reason = false, fmt.Sprintf("remove control folder: %v", err)
		}
	}()
	done := make(chan error, 1)
	go onSideThread(func() { done <- o.causeAndLook(folder, &c) })
	select { // the scan blocks on nothing; the wait is bounded all the same
	case err = <-done:
	case <-ctx.Done():
		return Control{Observer: c.Observer, Effect: c.Effect, Want: c.Want, Reason: ctx.Err().Error()}
	}
	if err != nil {
		c.Passed, c.Reason = false, err.Error()
	} else if !c.Passed {
		c.Reason = "the scan missed the control's mount or folder, or saw others"
	}
	return c
}

func (o *Mounts) causeAndLook(folder string, c *Control) error {
	granted, foreign := filepath.Join(folder, "granted"), filepath.Join(folder, "foreign")
	if err := errors.Join(os.Mkdir(granted, 0o700), os.Mkdir(foreign, 0o700)); err != nil {
		return fmt.Errorf("make control folders: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS | unix.CLONE_FILES); err != nil {
		return fmt.Errorf("unshare control thread (needs CAP_SYS_ADMIN): %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make control mounts private: %w", err)
	}
	look := func() (*mountScan, error) {
		m, err := readHostMounts(o.host, []string{granted})
		if err != nil {
			return nil, err
		}
		return scanMounts(o.host, m, []string{fmt.Sprintf("%d/task/%d", os.Getpid(), unix.Gettid())}, nil, nil)
	}
	before, err := look()
	if err != nil {
		return err
	}
	if err := unix.Mount(foreign, granted, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount control folder: %w", err)
	}
	fd, err := unix.Open(foreign, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open control folder: %w", err)
	}
	after, err := look()
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return err
	}
	mounts, folders := beyond(after.mounts, before.mounts), beyond(after.folders, before.folders)
	c.Seen = fmt.Sprintf("mounts %q, folders %q", mounts, folders)
	c.Passed = len(mounts) == 1 && len(folders) == 1 &&
		containsWord(mounts[0], foreign) && containsWord(mounts[0], granted) && containsWord(folders[0], foreign)
	return nil
}

// onSideThread runs what changes its own thread for good and lets that thread
// end with it. It's never the process's first thread: /proc/self shows that
// one's namespaces, and Go can't end it.
func onSideThread(run func()) {
	runtime.LockOSThread()
	if unix.Gettid() != os.Getpid() {
		run() // never unlocked: the thread ends with the goroutine
		return
	}
	defer runtime.UnlockOSThread()
	done := make(chan struct{})
	go func() {
		defer close(done)
		onSideThread(run)
	}()
	<-done
}

// beyond returns the words of what is in after and not in before.
func beyond(after, before map[string]string) []string {
	var words []string
	for key, word := range after {
		if _, known := before[key]; !known {
			words = append(words, word)
		}
	}
	return words
}

func containsWord(words, want string) bool {
	for word := range strings.FieldsSeq(words) {
		if strings.Trim(word, ",()") == want {
			return true
		}
	}
	return false
}
