package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	maxAsk    = 4 << 10 // bytes of a request's body
	maxReason = 256     // bytes of a reason
	askWithin = 5 * time.Second
)

// Wish is the body of POST /trigger.
type Wish struct {
	Reason string `json:"reason"` // 1 to 256 bytes
}

// Handler answers on the daemon's socket:
//
//	GET  /healthz       200 while the daemon decides; 503 when it hangs
//	GET  /readyz        200 while something is published; 503 with the reason
//	GET  /status        the [Status]
//	GET  /capabilities  what is published, to the byte; 503 with the reason
//	POST /trigger       a [Wish]; 202
//
// Who may ask is the listener's business.
func (d *Daemon) Handler() http.Handler {
	mux := http.NewServeMux()
	d.healthy(mux)
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		data, err := json.MarshalIndent(d.Status(), "", " ")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(data, '\n')) // who went away does not need it
	})
	mux.HandleFunc("GET /capabilities", func(w http.ResponseWriter, _ *http.Request) {
		s := d.Status()
		if err := s.ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(s.Attested)
	})
	mux.HandleFunc("POST /trigger", func(w http.ResponseWriter, r *http.Request) {
		var wish Wish
		dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAsk))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&wish); err != nil {
			http.Error(w, "body: "+brief(err.Error()), http.StatusBadRequest)
			return
		}
		if wish.Reason == "" || len(wish.Reason) > maxReason {
			http.Error(w, fmt.Sprintf("reason: must be 1 to %d bytes", maxReason), http.StatusBadRequest)
			return
		}
		d.Ask(wish.Reason)
		w.WriteHeader(http.StatusAccepted)
	})
	return mux
}

// healthy adds what a supervisor asks. It tells nothing but that.
func (d *Daemon) healthy(mux *http.ServeMux) {
	answer := func(path string, check func() error) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			if err := check(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			_, _ = io.WriteString(w, "ok\n")
		})
	}
	answer("/healthz", d.alive)
	answer("/readyz", func() error {
		if err := d.alive(); err != nil {
			return err
		}
		return d.Status().ready()
	})
}

// server is bounded in everything that a client can stretch.
func server(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: askWithin, ReadTimeout: askWithin, WriteTimeout: askWithin, IdleTimeout: askWithin,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// listenUnix makes the socket, for root, the daemon's user and the group only.
// What an earlier daemon left under the name is removed, unless somebody listens
// there: the lock on the state folder does not tell of a daemon with another.
func listenUnix(path string, gid int) (*net.UnixListener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if st, err := os.Lstat(path); err == nil && st.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("socket: %s is there and is no socket: move it away, or choose another path", path)
	}
	c, err := net.DialTimeout("unix", path, askWithin)
	if err == nil || errors.Is(err, syscall.EAGAIN) { // whose queue is full listens too (unix(7))
		err = fmt.Errorf("socket: somebody listens at %s: end it, or give this daemon another socket", path)
		if c != nil {
			err = errors.Join(err, c.Close())
		}
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	// Between bind and here others may connect already: the gate asks who they are.
	err = os.Chmod(path, 0o600)
	if err == nil && gid >= 0 {
		err = errors.Join(os.Chown(path, -1, gid), os.Chmod(path, 0o660))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("socket: %w", err), l.Close())
	}
	return l, nil
}

// standsAt tells whether the socket at a path is that listener's. Its name can be
// removed or given to another while it listens on.
type standsAt struct {
	path string
	made os.FileInfo
}

func whereItStands(path string) (standsAt, error) {
	made, err := os.Lstat(path)
	if err != nil {
		return standsAt{}, fmt.Errorf("socket: %w", err)
	}
	return standsAt{path, made}, nil
}

func (s standsAt) still() bool {
	now, err := os.Lstat(s.path)
	return err == nil && os.SameFile(now, s.made)
}

// remove takes the name away, unless it is somebody else's by now.
func (s standsAt) remove() error {
	if !s.still() {
		return nil
	}
	return os.Remove(s.path)
}

// socketEvery is how often it is looked whether the socket still has its name.
const socketEvery = 10 * time.Second

// answer serves at a unix socket until the context ends. A socket that lost its
// name, so that nobody can find it, is made anew.
func answer(ctx context.Context, h http.Handler, l *net.UnixListener, path string, gid int, every time.Duration, log *slog.Logger) error {
	for {
		l.SetUnlinkOnClose(false)
		at, err := whereItStands(path)
		if err != nil {
			return errors.Join(err, l.Close())
		}
		here, gone := context.WithCancel(ctx)
		go func() {
			defer gone()
			t := time.NewTicker(every)
			defer t.Stop()
			for at.still() {
				select {
				case <-here.Done():
					return
				case <-t.C:
				}
			}
		}()
		err = serve(here, server(h, log), newGate(l, gid))
		gone()
		if err = errors.Join(err, at.remove()); err != nil || ctx.Err() != nil {
			return err
		}
		log.Warn("the socket lost its name, and is made anew", "socket", path)
		if l, err = listenUnix(path, gid); err != nil {
			return err
		}
	}
}

// serve answers until the context ends.
func serve(ctx context.Context, s *http.Server, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // Serve says what matters
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}
