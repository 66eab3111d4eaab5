package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// receiver is a messenger that fails as often as it is told to, or hangs.
type receiver struct {
	mu    sync.Mutex
	fail  int
	hang  bool
	times []time.Time
	got   []string
}

func (*receiver) Name() string { return "receiver" }
func (r *receiver) Deliver(ctx context.Context, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times = append(r.times, time.Now())
	if r.hang {
		r.mu.Unlock()
		<-ctx.Done()
		r.mu.Lock()
		return ctx.Err()
	}
	if r.fail--; r.fail >= 0 {
		return errors.New("not now")
	}
	r.got = append(r.got, string(data))
	return nil
}

var quiet = slog.New(slog.DiscardHandler)

func TestANoticeIsDeliveredAgainAfterLongerPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{fail: 4}
		n := newNotifier(quiet, "", []Messenger{r})
		must(t, n.send(Notice{ID: "one"}))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(r.got) != 1 || !strings.Contains(r.got[0], `"id":"one"`) || !strings.Contains(r.got[0], NoticeSchema) {
			t.Errorf("got %v", r.got)
		}
		for i := range len(r.times) - 1 {
			if got, want := r.times[i+1].Sub(r.times[i]), time.Second<<i; got != want {
				t.Errorf("pause %d was %s, want %s", i, got, want)
			}
		}
		n.close()
	})
}

func TestANoticeIsGivenUpInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{fail: 1000}
		n := newNotifier(quiet, "", []Messenger{r})
		must(t, n.send(Notice{}))
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if len(r.times) != attempts {
			t.Errorf("%d attempts", len(r.times))
		}
		n.close()
	})
}

// One that hangs neither blocks the sender nor the other messenger, and what
// waits for it is bounded: the newest is kept.
func TestOneThatHangsHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := &receiver{hang: true}, &receiver{}
		n := newNotifier(quiet, "", []Messenger{bad, good})
		began := time.Now()
		for i := range 100 {
			must(t, n.send(Notice{ID: strconv.Itoa(i)}))
			synctest.Wait()
		}
		if time.Since(began) > 0 {
			t.Errorf("sending took %s", time.Since(began))
		}
		if len(good.got) != 100 {
			t.Errorf("the other got %d", len(good.got))
		}
		if q := n.posts[0].queue; len(q) != queued || !strings.Contains(string(q[queued-1]), `"id":"99"`) {
			t.Errorf("%d wait", len(q))
		}
		began = time.Now()
		n.close()
		if took := time.Since(began); took > flushIn {
			t.Errorf("closing took %s", took)
		}
	})
}

// What was not delivered when a daemon ended or was killed is delivered by the
// next one, in its order and to the same receiver; what was is not told again.
func TestUndeliveredNoticesOutliveTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), waitingFile)
		bad := &receiver{fail: 1000}
		n := newNotifier(quiet, file, []Messenger{bad})
		must(t, n.send(Notice{ID: "one"}))
		must(t, n.send(Notice{ID: "two"}))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if u := n.undelivered(); len(u) != 1 || u[0].Waiting != 2 || u[0].Why != "not now" {
			t.Errorf("undelivered: %+v", u)
		}
		killed, err := os.ReadFile(file) // as it stands while it lives
		must(t, err)
		n.close()
		for _, how := range []string{"ended", "killed"} {
			if how == "killed" {
				must(t, os.WriteFile(file, killed, 0o600))
			}
			good := &receiver{}
			n := newNotifier(quiet, file, []Messenger{good})
			time.Sleep(time.Second)
			synctest.Wait()
			must(t, n.send(Notice{ID: "three"}))
			synctest.Wait()
			if u := n.undelivered(); len(u) != 0 {
				t.Errorf("undelivered: %+v", u)
			}
			n.close()
			if got := strings.Join(good.got, " "); len(good.got) != 3 || strings.Index(got, `"one"`) > strings.Index(got, `"two"`) || !strings.Contains(good.got[2], `"three"`) {
				t.Errorf("%s: the next one delivered %s", how, got)
			}
		}
		again := &receiver{}
		n = newNotifier(quiet, file, []Messenger{again})
		time.Sleep(time.Second)
		n.close()
		if len(again.got) != 0 {
			t.Errorf("told again: %s", again.got)
		}
		must(t, os.WriteFile(file, []byte("{"), 0o600))
		n = newNotifier(quiet, file, []Messenger{again}) // no reason not to start
		must(t, n.send(Notice{ID: "four"}))
		n.close()
		if len(again.got) != 1 {
			t.Errorf("beside a damaged file: %s", again.got)
		}
	})
}

// What is queued when the daemon ends still goes out.
func TestWhatIsQueuedAtTheEndGoesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		n := newNotifier(quiet, "", []Messenger{r})
		must(t, n.send(Notice{}))
		n.close()
		if len(r.got) != 1 {
			t.Errorf("got %d", len(r.got))
		}
	})
}

func script(t *testing.T, body string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hook")
	write(t, file, "#!/bin/sh\n"+body+"\n")
	return file
}

func TestExecHook(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	h := ExecHook{Argv: []string{script(t, `cat >"$1"; env >"$1.env"`), out}}
	t.Setenv("SECRET", "x")
	must(t, h.Deliver(t.Context(), []byte(`{"id":"one"}`)))
	data, err := os.ReadFile(out)
	if err != nil || string(data) != `{"id":"one"}` {
		t.Errorf("%s, %v", data, err)
	}
	env, err := os.ReadFile(out + ".env")
	if err != nil || strings.Contains(string(env), "SECRET") {
		t.Errorf("environment %s, %v", env, err)
	}
	h = ExecHook{Argv: []string{script(t, "echo out of paper >&2; exit 3")}}
	if err := h.Deliver(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "exit status 3: out of paper") {
		t.Error(err)
	}
}

// What a hook leaves running may hold its output: the notice was delivered all
// the same, and is not delivered ten times.
func TestExecHookThatLeavesSomethingRunning(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	h := ExecHook{Argv: []string{script(t, "sleep 300 & echo $! >"+pid)}}
	must(t, h.Deliver(t.Context(), nil))
	data, err := os.ReadFile(pid)
	must(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	must(t, err)
	must(t, unix.Kill(n, unix.SIGKILL)) // it is there
}

// A hook that hangs is killed with what it started.
func TestExecHookIsBounded(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	h := ExecHook{Argv: []string{script(t, "sleep 300 & echo $! >"+pid+"; wait")}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Deliver(ctx, nil) }()
	var child int
	waitFor(t, "the hook's child", func() bool {
		data, err := os.ReadFile(pid)
		if err != nil {
			return false
		}
		_, err = fmt.Sscan(string(data), &child)
		return err == nil
	})
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Error(err)
	}
	waitFor(t, "its end", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

// waitFor waits for what has no event, with a deadline.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s never came", what)
		}
	}
}

// hookServer is a receiver on a unix socket: no packet leaves for any address.
func hookServer(t *testing.T, h http.HandlerFunc) *http.Client {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	must(t, err)
	s := &http.Server{Handler: h}
	go func() { _ = s.Serve(l) }() // until it is closed
	t.Cleanup(func() { must(t, s.Close()) })
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", l.Addr().String())
	}}}
}

func TestWebhookIsSigned(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "0123456789abcdef\n")
	must(t, os.Chmod(secret, 0o600))
	hook, err := NewWebhook(Webhook{URL: "http://hook.invalid/x?token=T", SecretFile: secret})
	must(t, err)
	status := http.StatusAccepted
	redirect := hook.Client.CheckRedirect
	hook.Client = hookServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != `{"id":"one"}` || r.Method != http.MethodPost {
			t.Errorf("%s %s, %v", r.Method, body, err)
		}
		at := r.Header.Get(HeaderTime)
		if got, want := r.Header.Get(HeaderSignature), "sha256="+Sign([]byte("0123456789abcdef"), at, body); got != want {
			t.Errorf("signature %s, want %s", got, want)
		}
		if s, err := strconv.ParseInt(at, 10, 64); err != nil || time.Since(time.Unix(s, 0)).Abs() > time.Minute {
			t.Errorf("time %s", at)
		}
		w.Header().Set("Location", "http://elsewhere.invalid/")
		w.WriteHeader(status)
	})
	hook.Client.CheckRedirect = redirect
	must(t, hook.Deliver(t.Context(), []byte(`{"id":"one"}`)))
	for _, status = range []int{http.StatusFound, http.StatusInternalServerError} {
		if err := hook.Deliver(t.Context(), []byte(`{"id":"one"}`)); err == nil || !strings.Contains(err.Error(), strconv.Itoa(status)) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// The signature is what openssl computes: printf '1.{}' | openssl dgst -sha256 -hmac key
func TestTheSignatureIsHMAC(t *testing.T) {
	if got, want := Sign([]byte("key"), "1", []byte("{}")), "1ba6b8171186efc613e8bcc0cbdab2748f24984d7c5a84faa2637afa0e40d224"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTheSecretIsOurs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	for _, c := range []struct {
		text string
		mode os.FileMode
		want string
	}{{"0123456789abcdef", 0o640, "mode"}, {"short\n", 0o600, "less than 16"}} {
		write(t, file, c.text)
		must(t, os.Chmod(file, c.mode))
		if _, err := NewWebhook(Webhook{SecretFile: file}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
