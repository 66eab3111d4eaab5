package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// asked is the answer of the daemon's handler.
func asked(d *Daemon, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	d.Handler().ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		want := func(method, path, body string, code int, words string) {
			t.Helper()
			w := asked(r.d, method, path, body)
			if w.Code != code || !strings.Contains(w.Body.String(), words) {
				t.Errorf("%s %s: %d %q, want %d %q", method, path, w.Code, w.Body, code, words)
			}
		}
		want("GET", "/healthz", "", 200, "ok")
		want("GET", "/readyz", "", 503, "nothing is published: the first run has not ended")
		want("GET", "/capabilities", "", 503, "nothing is published")
		r.pass(r.takes)
		want("GET", "/readyz", "", 200, "ok")
		file, err := os.ReadFile(r.cfg.Publish)
		must(t, err)
		want("GET", "/capabilities", "", 200, string(file))
		want("GET", "/status", "", 200, `"published": "`+r.cfg.Publish)
		want("POST", "/trigger", `{"reason":"deploy"}`, 202, "")
		synctest.Wait()
		if r.count() != 2 || r.runs[1].Reason != "asked: deploy" || r.runs[1].Cause != CauseTrigger {
			t.Errorf("%d runs", r.count())
		}
		want("POST", "/trigger", `{}`, 400, "reason")
		want("POST", "/trigger", `{"reason":"`+strings.Repeat("x", maxReason+1)+`"}`, 400, "reason")
		want("POST", "/trigger", `{"reason":"x","colour":1}`, 400, "unknown field")
		want("POST", "/trigger", `{"reason":"`+strings.Repeat("x", maxAsk), 400, "too large")
		want("GET", "/trigger", "", 405, "")
		want("GET", "/", "", 404, "")
		var s Status
		must(t, json.Unmarshal(asked(r.d, "GET", "/status", "").Body.Bytes(), &s))
		if s.Running == nil || s.Last == nil || s.LastGood == nil || s.Next == nil || s.Qualified == nil {
			t.Errorf("%+v", s)
		}
		if text := s.Text(); !strings.Contains(text, "qualified      until 2000-01-02T00:00:12Z") || !strings.Contains(text, "asked: deploy") {
			t.Errorf("%s", text)
		}
		// Between an expiry and the moment at which the daemon sees it.
		r.set(func() { r.offset = time.Hour })
		want("GET", "/readyz", "", 503, "has expired")
		want("GET", "/capabilities", "", 503, "has expired")
	})
}

// A loop that hangs is not healthy.
func TestAHangingLoopIsNotHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.pass(r.takes)
		r.set(func() { r.readIn = 10 * time.Minute })
		r.event()
		r.pass(4 * time.Minute)
		if w := asked(r.d, "GET", "/healthz", ""); w.Code != 503 || !strings.Contains(w.Body.String(), "has done nothing for") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

func TestWhoMayAsk(t *testing.T) {
	us := uint32(os.Geteuid())
	for _, c := range []struct {
		p    peer
		gid  int
		want bool
	}{
		{peer{uid: 0}, -1, true}, {peer{uid: us}, -1, true}, {peer{uid: us + 7, groups: []uint32{0}}, -1, false},
		{peer{uid: us + 7, groups: []uint32{5, 6}}, 6, true}, {peer{uid: us + 7, groups: []uint32{5}}, 6, false},
	} {
		if got := c.p.may(c.gid); got != c.want {
			t.Errorf("%+v with group %d: %t", c.p, c.gid, got)
		}
	}
}

// The kernel says who we are, with our groups.
func TestPeerIsTheKernels(t *testing.T) {
	l, err := listenUnix(filepath.Join(t.TempDir(), "sock"), -1)
	must(t, err)
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	must(t, err)
	defer c.Close()
	s, err := l.AcceptUnix()
	must(t, err)
	defer s.Close()
	p, err := peerOf(s)
	must(t, err)
	groups, err := os.Getgroups()
	must(t, err)
	if p.uid != uint32(os.Geteuid()) || int(p.pid) != os.Getpid() || len(p.groups) != len(groups)+1 || p.groups[0] != uint32(os.Getegid()) {
		t.Errorf("%+v, our groups %v", p, groups)
	}
	if st, err := os.Stat(l.Addr().String()); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

func TestASocketIsNoFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sock")
	write(t, file, "x")
	if _, err := listenUnix(file, -1); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Error(err)
	}
}

// More connections than there is room for are closed; a place that is given
// back is given again; one that says nothing is closed in time.
func TestConnectionsAreBounded(t *testing.T) {
	sock := filepath.Join(t.TempDir(), "sock")
	l, err := listenUnix(sock, -1)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	go func() { ended <- serve(ctx, server(h, slog.New(slog.DiscardHandler)), newGate(l, -1)) }()
	t.Cleanup(func() { cancel(); must(t, <-ended) })
	var open []net.Conn
	for range 3 * maxConnections {
		c, err := net.Dial("unix", sock)
		must(t, err)
		defer c.Close()
		open = append(open, c)
	}
	closed := 0
	for _, c := range open[maxConnections:] {
		must(t, c.SetReadDeadline(time.Now().Add(5*time.Second)))
		if _, err := c.Read(make([]byte, 1)); err == io.EOF || err != nil && strings.Contains(err.Error(), "reset") {
			closed++
		}
	}
	if closed != 2*maxConnections {
		t.Errorf("%d of %d beyond the bound were closed", closed, 2*maxConnections)
	}
	if _, err := (Client{sock}).Status(t.Context()); err == nil || !strings.Contains(err.Error(), "so many may ask at once") {
		t.Errorf("asked while it is full: %v", err)
	}
	for _, c := range open {
		must(t, c.Close())
	}
	waitFor(t, "a place", func() bool { _, err := (Client{sock}).Status(t.Context()); return err == nil })
}

func TestAClientIsToldWhatToDo(t *testing.T) {
	c := Client{filepath.Join(t.TempDir(), "none")}
	if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "start harness watch") {
		t.Error(err)
	}
}

// crowded is a socket at which somebody listens and nobody is served: its queue
// is full.
func crowded(t *testing.T) (path string, l net.Listener) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "tw-") // short: see unix(7), sun_path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path = filepath.Join(dir, "sock")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), path)
	if l, err = net.FileListener(f); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); f.Close() })
	for {
		c, err := net.Dial("unix", path)
		if errors.Is(err, unix.EAGAIN) {
			return path, l
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
}

func TestClientWaitsForRoom(t *testing.T) {
	path, l := crowded(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*dialAgain)
	defer cancel()
	if _, err := (Client{path}).Status(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before there is room: %v", err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })}
	go s.Serve(l) //nolint:errcheck // it ends with the listener
	t.Cleanup(func() { s.Close() })
	if _, err := (Client{path}).Status(t.Context()); err != nil {
		t.Errorf("with room: %v", err)
	}
}

// Whose queue is full listens: its socket is not taken away.
func TestCrowdedSocketIsSomebodys(t *testing.T) {
	path, _ := crowded(t)
	if l, err := listenUnix(path, -1); err == nil || !strings.Contains(err.Error(), "somebody listens") {
		t.Errorf("%v, %v", l, err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}

// Somebody waits for the run that he asked for: not for one that began before, and
// not for ever where there can be none.
func TestAwait(t *testing.T) {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	ran := func(id string, after time.Duration) *Ran { return &Ran{ID: id, Began: now.Add(after)} }
	for name, c := range map[string]struct {
		answers []Status // to one question after the other; the last to all further ones
		run     string
		err     string
	}{
		"the next run": {[]Status{{At: now, Last: ran("old", -time.Hour)}, {Due: "asked"}, {Running: &Request{}, Last: ran("before", -time.Second)}, {Last: ran("asked", time.Second)}}, "asked", ""},
		"none":         {[]Status{{At: now}, {Why: "no runsc"}}, "", "the daemon makes no run: no runsc"},
		"no end":       {[]Status{{At: now}, {Running: &Request{}}}, "", "wait for the run: enough"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sock := filepath.Join(t.TempDir(), "sock")
			l, err := net.Listen("unix", sock)
			must(t, err)
			asked, triggered := 0, 0
			mux := http.NewServeMux()
			mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
				if err := json.NewEncoder(w).Encode(c.answers[min(asked, len(c.answers)-1)]); err != nil {
					t.Error(err)
				}
				asked++
			})
			mux.HandleFunc("POST /trigger", func(w http.ResponseWriter, _ *http.Request) { triggered++; w.WriteHeader(http.StatusAccepted) })
			s := &http.Server{Handler: mux}
			go func() { _ = s.Serve(l) }() // until it is closed
			t.Cleanup(func() { must(t, s.Close()) })
			ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errors.New("enough"))
			defer cancel()
			got, err := Client{sock}.Await(ctx, "deploy")
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%+v, %v", got, err)
				}
			} else if err != nil || got.Last.ID != c.run {
				t.Errorf("%+v, %v", got, err)
			}
			if triggered != 1 {
				t.Errorf("triggered %d times", triggered)
			}
		})
	}
}

// A socket whose name was removed is made anew; one whose name another has now is
// the other's, and is left to it.
func TestASocketThatLostItsName(t *testing.T) {
	sock := filepath.Join(t.TempDir(), "sock")
	l, err := listenUnix(sock, -1)
	must(t, err)
	ended := make(chan error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { ended <- answer(ctx, h, l, sock, -1, time.Millisecond, quiet) }()
	answers := func() bool { _, err := Client{sock}.Status(t.Context()); return err == nil }
	waitFor(t, "an answer", answers)
	must(t, os.Remove(sock))
	waitFor(t, "an answer at the same path", answers)
	write(t, sock+".other", "x")
	must(t, os.Rename(sock+".other", sock))
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "is there and is no socket") {
		t.Errorf("ended with %v", err)
	}
	if !isFile(sock) {
		t.Error("somebody else's file was removed")
	}

	// At its end it takes its own name away.
	must(t, os.Remove(sock))
	l, err = listenUnix(sock, -1)
	must(t, err)
	go func() { ended <- answer(ctx, h, l, sock, -1, time.Millisecond, quiet) }()
	waitFor(t, "an answer", answers)
	cancel()
	must(t, <-ended)
	if _, err := os.Lstat(sock); err == nil {
		t.Error("it left its socket")
	}
}
