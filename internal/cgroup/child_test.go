package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// actVar makes the test binary act as a child instead of testing.
const actVar = "TENWALLS_TEST_ACT"

func TestMain(m *testing.M) {
	if word := os.Getenv(actVar); word != "" {
		if group, ok := strings.CutPrefix(word, "tie "); ok {
			os.Exit(tie(group))
		}
		os.Exit(act(word))
	}
	os.Exit(m.Run())
}

// act says on stdout where the child found itself at its start, then acts.
func act(word string) int {
	where, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 2
	}
	os.Stdout.Write(where)
	os.Stdout.Close()
	switch word {
	case "where":
	case "spin":
		for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
		}
	case "hog":
		// Far beyond any limit here, and no danger to the machine where the
		// limit is missing.
		for range 256 {
			block := make([]byte, 1<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			hogged = append(hogged, block)
		}
	case "sleep":
		block()
	default: // a number: so many children that only sleep
		n, err := strconv.Atoi(word)
		if err != nil {
			return 2
		}
		for range n {
			c := exec.Command("/bin/sleep", "1000")
			if err := c.Start(); err != nil {
				return 3
			}
		}
		block()
	}
	return 0
}

// tie starts a child tied to this process, in the group "root version path",
// says its id and waits to be killed.
func tie(group string) int {
	var root, path string
	var version int
	if _, err := fmt.Sscan(group, &root, &version, &path); err != nil {
		return 2
	}
	h, err := Detect(root)
	if version == 2 && err != nil { // a version 2 tree without controllers
		h, err = &Hierarchy{version: 2, trees: []tree{{root: root}}}, nil
	}
	if err != nil {
		return 3
	}
	g, err := h.Open(path)
	if err != nil {
		return 4
	}
	cmd := exec.Command("/bin/sleep", "1000")
	if _, err := g.StartTied(nil, cmd); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 5
	}
	fmt.Println(cmd.Process.Pid)
	block()
	return 0
}

// block waits for ever; an empty select would end as a deadlock in a program
// without cgo.
func block() {
	for {
		_ = unix.Pause()
	}
}

var hogged [][]byte

func child(act string) (*exec.Cmd, *strings.Builder) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), actVar+"="+act)
	out := new(strings.Builder)
	cmd.Stdout = out
	return cmd, out
}
