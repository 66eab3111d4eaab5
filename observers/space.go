package observers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Space is the observer "space": what a job takes from the host's real file
// systems, at the worst moment and not after (step 3 of the attempts).
//
// Free space belongs to the whole host: what others write meanwhile counts in
// it too. "held" and "scratch" are the job's alone. Network file systems are not
// asked for their free space, because a server that is gone would block the
// harness; files held on them count in "held". Not seen: blocks of a file that
// is mapped but no longer open.
type Space struct {
	host    Host
	folders []string
}

// NewSpace returns the observer. Its control writes in the given folders, or at
// the mount point of a file system in which none of them lies.
func NewSpace(h Host, folders []string) *Space { return &Space{host: h, folders: folders} }

// Name returns "space".
func (*Space) Name() string { return "space" }

// Watch arms the observer. All values are bytes:
//
//   - "free MOUNTPOINT": free space of a real file system; Worst is the least,
//   - "drop": the largest drop below Before of any of them,
//   - "held": blocks of the regular files on real file systems that the job's
//     locked-in processes (see [Mounts]) hold open for writing, deleted ones
//     too, each counted once,
//   - "scratch": blocks in Subject.Scratch, 0 when that is no real file system,
//   - "scratch_tmpfs": for information, what is used of the tmpfs behind it.
func (o *Space) Watch(_ context.Context, s Subject) (Watch, error) {
	systems, err := realFilesystems(o.host)
	if err != nil {
		return nil, err
	}
	jail, err := newLockedIn(o.host, s)
	if err != nil {
		return nil, err
	}
	w := &spaceWatch{host: o.host, subject: s, systems: systems, jail: jail}
	w.obs = Observation{Observer: o.Name(), Place: s.Place, Values: map[string]Reading{}}
	for i := range w.systems {
		if w.systems[i].before, err = freeBytes(w.systems[i].mountpoint); err != nil {
			return nil, err
		}
		free := w.systems[i].before
		w.obs.Values["free "+w.systems[i].mountpoint] = Reading{Before: free, Worst: free, After: free, Unit: "bytes"}
	}
	w.grow("drop", 0)
	w.grow("held", 0)
	return w, w.scratch(true)
}

type spaceWatch struct {
	host    Host
	subject Subject
	systems []filesystem
	jail    *lockedIn
	walked  time.Time     // when the scratch was last walked
	walk    time.Duration // and how long that took
	obs     Observation
}

// Sample asks every file system for its free space and adds up what is held. A
// scratch folder on a real file system has to be walked, which may take at most
// a tenth of the time.
func (w *spaceWatch) Sample() {
	w.obs.Samples++
	w.lose(w.sample())
	w.lose(w.scratch(false))
}

func (w *spaceWatch) sample() error {
	var drop int64
	for _, system := range w.systems {
		free, err := freeBytes(system.mountpoint)
		if err != nil {
			return err
		}
		r := w.obs.Values["free "+system.mountpoint]
		r.Worst, r.After = min(r.Worst, free), free
		w.obs.Values["free "+system.mountpoint] = r
		drop = max(drop, system.before-free)
	}
	w.grow("drop", drop)
	// A child of the harness that has not called execve(2) yet still holds what
	// the harness holds: only processes that have locked themselves in count.
	pids, err := w.jail.pids()
	if err != nil {
		return err
	}
	blocks, err := heldBlocks(w.host, pids)
	var held int64
	for _, bytes := range blocks {
		held += bytes
	}
	w.grow("held", held)
	return err
}

func (w *spaceWatch) scratch(always bool) error {
	if w.subject.Scratch == "" || (!always && time.Since(w.walked) < 9*w.walk) {
		return nil
	}
	var st unix.Statfs_t
	err := unix.Statfs(w.subject.Scratch, &st)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // not made yet, or removed
	}
	if err != nil {
		return fmt.Errorf("statfs scratch: %w", err)
	}
	if unbacked(int64(st.Type)) {
		w.grow("scratch", 0)
		w.grow("scratch_tmpfs", int64(st.Blocks-st.Bfree)*st.Bsize)
		return nil
	}
	w.walked = time.Now()
	bytes, err := folderBlocks(w.subject.Scratch)
	w.walk = time.Since(w.walked)
	w.grow("scratch", bytes)
	return err
}

func (w *spaceWatch) Ended() {
	w.lose(w.sample())
	w.lose(w.scratch(true))
}

func (w *spaceWatch) Stored() Observation {
	w.lose(w.sample())
	return w.obs
}

func (w *spaceWatch) grow(name string, bytes int64) {
	r, known := w.obs.Values[name]
	if !known {
		r = Reading{Before: bytes, Unit: "bytes"}
	}
	r.Worst, r.After = max(r.Worst, bytes), bytes
	w.obs.Values[name] = r
}

func (w *spaceWatch) lose(err error) {
	if err != nil && w.obs.Lost == "" {
		w.obs.Lost = err.Error()
	}
}

// inode tells a file apart from all others of the host.
type inode struct {
	major, minor uint32
	ino          uint64
}

// heldBlocks returns the bytes of the blocks behind each regular file that the
// processes hold open for writing on a file system with storage.
func heldBlocks(h Host, pids []int) (map[inode]int64, error) {
	held := map[inode]int64{}
	for _, pid := range distinctFiles(h, pids) {
		things, err := openThings(h, strconv.Itoa(pid))
		if err != nil {
			if processGone(h, strconv.Itoa(pid), err) {
				continue
			}
			return held, err
		}
		for _, thing := range things {
			if thing.stat.Mode&unix.S_IFMT != unix.S_IFREG {
				continue
			}
			counts, err := thing.takesSpace(h)
			if errors.Is(err, errChanged) {
				continue // closed since: it holds nothing
			}
			if err != nil {
				return held, err
			}
			if counts {
				held[thing.inode()] = int64(thing.stat.Blocks) * 512
			}
		}
	}
	return held, nil
}

// takesSpace tells whether the file is open for writing on a file system with
// storage. One that is only read is not asked where it lies: its server may be
// gone.
func (o openThing) takesSpace(h Host) (bool, error) {
	if writing, err := o.writing(h); err != nil || !writing {
		return false, err
	}
	magic, err := o.filesystem(h)
	return !unbacked(magic), err
}

// folderBlocks adds up the blocks of a tree, a file with several names once.
func folderBlocks(root string) (int64, error) {
	var bytes int64
	counted := map[inode]bool{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		id := inode{unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino}
		if err == nil && !counted[id] {
			counted[id] = true
			bytes += st.Blocks * 512
		}
		return err
	})
	if err != nil {
		return bytes, fmt.Errorf("add up blocks: %w", err)
	}
	return bytes, nil
}

// filesystem is one real file system, at one place where it's mounted.
type filesystem struct {
	mountpoint string
	dev        spot
	readOnly   bool // as a whole: nothing can fill it
	before     int64
}

// storedWithoutDevice lists the types that /proc/filesystems calls "nodev" and
// that keep their files on storage of this machine all the same.
var storedWithoutDevice = []string{"zfs", "bcachefs", "overlay", "9p", "virtiofs"}

// realFilesystems lists the file systems with storage behind them, each once,
// from the host's mount table and /proc/filesystems (proc_filesystems(5)). An
// overlay counts only when the host can't see the file system of its upper
// folder, as in a container: elsewhere it would be the same storage twice.
func realFilesystems(h Host) ([]filesystem, error) {
	table, err := readMountTable(h, "self")
	if err != nil {
		return nil, err
	}
	types, err := os.ReadFile(filepath.Join(h.Proc, "filesystems"))
	if err != nil {
		return nil, fmt.Errorf("list file system types: %w", err)
	}
	stored := map[string]bool{}
	for line := range strings.Lines(string(types)) {
		if kind, ok := strings.CutPrefix(line, "\t"); ok {
			stored[strings.TrimSpace(kind)] = true
		}
	}
	for _, kind := range storedWithoutDevice {
		stored[kind] = true
	}
	systems := map[spot]filesystem{}
	covered := map[string]spot{} // the newest mount at each point hides the others
	for _, mount := range table {
		covered[mount.Mountpoint] = spot{mount.Major, mount.Minor, ""}
	}
	for _, mount := range table {
		dev := spot{mount.Major, mount.Minor, ""}
		if _, known := systems[dev]; known || !stored[mount.FSType] || covered[mount.Mountpoint] != dev {
			continue
		}
		if mount.FSType == "overlay" && upperVisible(mount.VFSOptions) {
			continue
		}
		systems[dev] = filesystem{mountpoint: mount.Mountpoint, dev: dev, readOnly: hasOption(mount.VFSOptions, "ro")}
	}
	list := slices.Collect(maps.Values(systems))
	slices.SortFunc(list, func(a, b filesystem) int { return strings.Compare(a.mountpoint, b.mountpoint) })
	return list, nil
}

func upperVisible(options string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if upper, ok := strings.CutPrefix(option, "upperdir="); ok {
			_, err := os.Stat(upper)
			return err == nil
		}
	}
	return true // no upper folder: nothing can be written
}

func freeBytes(mountpoint string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(mountpoint, &st); err != nil {
		return 0, fmt.Errorf("statfs %s: %w", mountpoint, err)
	}
	return int64(st.Bfree) * st.Bsize, nil
}

// unbacked tells whether statfs(2)'s f_type names a file system of memory or of
// the kernel's own, behind which there is no storage.
func unbacked(magic int64) bool {
	switch magic {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.HUGETLBFS_MAGIC, unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC,
		unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.DEVPTS_SUPER_MAGIC, unix.NSFS_MAGIC,
		unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.BPF_FS_MAGIC:
		return true
	}
	return false
}
