package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// Parameters: "memory_bytes", the granted memory of the job (256 MiB when
// missing). Every page that is taken is written to and kept, so that what is
// taken is in memory (or swapped out) at the same time: one step beyond the
// granted bytes shows that the wall fell, and the payload stops there. The count
// of every claim is bytes.
var (
	_ = route("memory", "anonymous", func(p *Probe) { devour(p, "mmap(MAP_ANONYMOUS)", takeAnonymous) })
	_ = route("memory", "memfd", devourMemfd)
	_ = route("memory", "page-cache", devourPageCache)
	_ = route("memory", "stacks", devourStacks)
	_ = route("memory", "pipes", devourPipes)
	_ = route("memory", "runtime-heap", devourHeap)
)

// memoryStep is how much is taken between two claims of progress.
const memoryStep = 32 << 20

// take takes at least n bytes more, touches them, and returns how many it took.
type take func(n int) (int, error)

// devour takes memory until the job is ended, the taking is refused, or more
// than the granted memory is taken. Of several ways, the next follows when one
// is refused: what is full counts beside what comes after.
func devour(p *Probe, call string, ways ...take) {
	granted := numberOr(p, "memory_bytes", 256<<20)
	p.Reached(call, fmt.Sprintf("%d bytes granted; each page is touched and kept", granted))
	var taken int64
	for taken <= granted {
		n, err := ways[0](memoryStep)
		taken += int64(n)
		if err != nil && len(ways) == 1 {
			place, note := nowhere(errnoOf(err))
			p.Refused(kindOf(errnoOf(err)), place, call, taken, err.Error()+"; "+note)
			return
		}
		if err != nil {
			ways = ways[1:]
		}
		p.Progress(taken)
	}
	p.Happened(call, taken, fmt.Sprintf("%d bytes are touched and kept; %d granted", taken, granted))
}

func takeAnonymous(n int) (int, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return 0, fmt.Errorf("map anonymous memory: %w", err)
	}
	touch(b)
	return n, nil
}

// touch writes to every page of b.
func touch(b []byte) {
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
}

// takeByWriting takes what is written to a descriptor.
func takeByWriting(fd int) take {
	buf := make([]byte, 1<<20)
	touch(buf)
	return func(n int) (written int, err error) {
		for written < n {
			m, err := unix.Write(fd, buf)
			if err != nil && err != unix.EINTR {
				return written, fmt.Errorf("write: %w", err)
			}
			written += max(m, 0)
		}
		return written, nil
	}
}

func devourMemfd(p *Probe) {
	fd, err := unix.MemfdCreate("memory", 0)
	if err != nil {
		p.Failed("memfd_create: " + err.Error())
		return
	}
	devour(p, "memfd_create, write", takeByWriting(fd))
}

// devourPageCache fills scratch, which is memory of the host, and then the
// payload's own memory.
func devourPageCache(p *Probe) {
	path := filepath.Join(p.Scratch(), "page-cache")
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_RDWR, 0o600)
	if err != nil {
		p.Failed("create a file in scratch: " + err.Error())
		return
	}
	devour(p, "write to scratch, then mmap(MAP_ANONYMOUS)", takeByWriting(fd), takeAnonymous)
}

// devourStacks starts threads that each touch the whole of their own stack.
func devourStacks(p *Probe) {
	c, err := newCrew()
	if err != nil {
		p.Failed(err.Error())
		return
	}
	defer blockSignals()()
	devour(p, "clone(CLONE_THREAD) with a stack of 32 MiB", func(n int) (int, error) {
		stack, err := c.newStack(n)
		if err != nil {
			return 0, err
		}
		order := c.orderOn(stack)
		order.low = addressOf(stack)
		if errno := c.start(rawThread, order); errno != 0 {
			return 0, fmt.Errorf("start a thread: %w", errno)
		}
		if errno := c.hear(); errno != 0 {
			return 0, fmt.Errorf("hear a thread: %w", errno)
		}
		return n, nil
	})
}

// devourPipes fills pipes, whose buffers are the guest kernel's memory, and
// then the payload's own.
func devourPipes(p *Probe) {
	buf := make([]byte, 1<<20)
	devour(p, "write to pipes, then mmap(MAP_ANONYMOUS)", func(n int) (taken int, err error) {
		for taken < n {
			var fds [2]int
			if err := unix.Pipe2(fds[:], unix.O_NONBLOCK); err != nil {
				return taken, fmt.Errorf("make a pipe: %w", err)
			}
			// A pipe that can't be made larger is filled as it is.
			unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, len(buf))
			m, err := unix.Write(fds[1], buf)
			if err != nil {
				return taken, fmt.Errorf("fill a pipe: %w", err)
			}
			taken += m
		}
		return taken, nil
	}, takeAnonymous)
}

// devourHeap lets the Go runtime's heap grow by small objects that stay.
func devourHeap(p *Probe) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // all of it stays; looking for garbage costs only time
	type object [4096]byte
	var kept []*[256]*object
	devour(p, "allocate on the heap", func(n int) (taken int, err error) {
		for taken < n {
			block := new([256]*object)
			for i := range block {
				block[i] = new(object)
				block[i][0] = 1
				taken += len(block[i])
			}
			kept = append(kept, block)
		}
		return taken, nil
	})
}
