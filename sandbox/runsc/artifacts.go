package runsc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/evidence"
)

// Artifacts is where inputs come from and outputs go to. Both ends are
// identified by their reference; the runner compares size and digest itself.
type Artifacts interface {
	// Open returns the bytes of an input.
	Open(ctx context.Context, ref evidence.Ref) (io.ReadCloser, error)
	// Put stores the bytes of an output under its reference. Putting the same
	// reference again is no error.
	Put(ctx context.Context, ref evidence.Ref, data []byte) error
}

// inputError is an input that could not be had as it was sealed.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

// fetchInputs copies each input into the job's folder, owned by root and
// readable, and verifies it: what is mounted is what was sealed.
func (x *execution) fetchInputs() error {
	for _, in := range x.job.Inputs {
		if err := x.fetch(in); err != nil {
			return inputError{fmt.Errorf("input %q: %w", in.Path, err)}
		}
	}
	return nil
}

func (x *execution) fetch(in sandbox.Input) (err error) {
	src, err := x.r.opt.Artifacts.Open(context.Background(), in.Ref)
	if err != nil {
		return err
	}
	defer src.Close()
	to := filepath.Join(x.dirs.inputs, filepath.FromSlash(in.Path))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(src, in.Ref.Size+1))
	if err != nil {
		return err
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); n != in.Ref.Size || got != in.Ref.Digest {
		return fmt.Errorf("%w: %d bytes with digest %s, sealed as %d bytes with %s", sandbox.ErrMutated, n, got, in.Ref.Size, in.Ref.Digest)
	}
	return nil
}

// capture takes the declared outputs out of scratch, after every process of
// the job is gone, so that nothing can be swapped under it.
func (x *execution) capture(v *verdict) {
	var errs []error
	left := x.job.Limits.ArtifactBytes
	for _, out := range x.job.Outputs {
		data, err := readOutput(x.dirs.scratch, out.Path, min(out.MaxBytes, left))
		if err != nil {
			errs = append(errs, fmt.Errorf("output %q: %w", out.Path, err))
			continue
		}
		left -= int64(len(data))
		ref := evidence.Ref{
			ID: out.ID, Digest: evidence.Digest(data), Size: int64(len(data)), MediaType: out.MediaType,
			Producer: sandbox.ArtifactProducer, Source: x.job.OutputSource(out),
		}
		if err := x.r.opt.Artifacts.Put(context.Background(), ref, data); err != nil {
			errs = append(errs, fmt.Errorf("output %q: %w", out.Path, err))
			continue
		}
		v.artifacts = append(v.artifacts, ref)
	}
	if err := errors.Join(errs...); err != nil {
		v.reason, v.detail = ReasonArtifact, err.Error()
		return
	}
	if err := x.job.ValidateArtifacts(v.artifacts, true); err != nil {
		v.reason, v.detail = ReasonArtifact, err.Error()
	}
}

// readOutput reads one regular file below scratch. No component may be a link
// or lead out of the mount (openat2(2), RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS,
// RESOLVE_NO_XDEV), opening never waits for a pipe's other end, and no more
// than limit bytes are read.
func readOutput(scratch, name string, limit int64) ([]byte, error) {
	dir, err := unix.Open(scratch, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open scratch: %w", err)
	}
	defer unix.Close(dir)
	rel := strings.TrimPrefix(path.Clean("/"+name), "/")
	fd, err := unix.Openat2(dir, rel, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	})
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("refused: a link, or a path through one")
	case err != nil:
		return nil, fmt.Errorf("open: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("refused: not a regular file (%s)", st.Mode().Type())
	}
	if st.Size() > limit {
		return nil, fmt.Errorf("refused: %d bytes, beyond its cap of %d", st.Size(), limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("refused: beyond its cap of %d bytes", limit)
	}
	return data, nil
}
