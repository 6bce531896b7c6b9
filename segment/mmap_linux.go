package segment

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

const (
	minReserve = 64 << 10 // first step by which the active file grows
	maxReserve = 16 << 20 // and the largest
)

// tailMap is the read-write mapping of the active segment's file, and how much of that file is reserved.
//
// The file is reserved in steps that double while it is written, so that a full disk is an error of reserve and
// never a fault of a store. The mapping may be longer than the file: only reserved bytes are lent. Owner only.
type tailMap struct {
	file     file
	b        []byte // whole mapping
	reserved int64  // bytes of the file that have a block
	step     int64
}

// reserve makes [0, end) touchable; limit is where the file should end if it need not be longer.
//
// ErrNoSpace leaves the file and the mapping as they were. Nothing is zeroed: bytes above the file's old end are.
func (t *tailMap) reserve(end, limit int64) error {
	if end > t.reserved {
		if err := t.grow(end, limit); err != nil {
			return err
		}
	}
	if end <= int64(len(t.b)) {
		return nil
	}
	size := roundUp(max(end, limit), int64(os.Getpagesize()))
	if err := t.unmap(); err != nil {
		return err
	}
	b, err := t.file.Map(size)
	if err != nil {
		return fmt.Errorf("mapping %d bytes: %w", size, err)
	}
	t.b = b
	return nil
}

// grow reserves at least up to end, by a step more where there is room.
func (t *tailMap) grow(end, limit int64) error {
	t.step = min(max(t.step*2, minReserve), maxReserve)
	want := max(min(roundUp(end+t.step, int64(os.Getpagesize())), limit), end)
	err := t.file.Reserve(want)
	if err != nil && want > end {
		if cut := t.file.Truncate(t.reserved); cut != nil {
			return cut
		}
		want, t.step = end, 0
		err = t.file.Reserve(want)
	}
	if err != nil {
		if cut := t.file.Truncate(t.reserved); cut != nil {
			return cut
		}
		return err
	}
	t.reserved = want
	return nil
}

// zero clears [from, to), bytes that must never become the log.
func (t *tailMap) zero(from, to int64) (err error) {
	defer endGuard(debug.SetPanicOnFault(true), &err)
	clear(t.b[from:to])
	return nil
}

// unmap gives the mapping back; the file keeps its reservation.
func (t *tailMap) unmap() error {
	if t.b == nil {
		return nil
	}
	b := t.b
	t.b = nil
	return unix.Munmap(b)
}

// viewFile maps [pos, pos+size) of f read-only, shows it to use within a fault guard, and unmaps it.
// The bytes die with the call.
func viewFile(f file, pos, size int64, use func([]byte) error) error {
	if size <= 0 {
		return use(nil)
	}
	page := int64(os.Getpagesize())
	start := pos / page * page
	b, err := f.MapRead(start, pos+size-start)
	if err != nil {
		return fmt.Errorf("mapping %d bytes at %d: %w", size, pos, err)
	}
	err = guarded(b[pos-start:pos-start+size:pos-start+size], use)
	if uerr := unix.Munmap(b); err == nil && uerr != nil {
		err = uerr
	}
	return err
}

// guarded calls use with b; a fault in b becomes ErrMapFault.
func guarded(b []byte, use func([]byte) error) (err error) {
	defer endGuard(debug.SetPanicOnFault(true), &err)
	return use(b)
}

// endGuard is deferred around every touch of a mapping: `defer endGuard(debug.SetPanicOnFault(true), &err)`.
// A memory fault becomes ErrMapFault in *err; any other panic goes on. It allocates nothing in the good case.
func endGuard(was bool, err *error) {
	debug.SetPanicOnFault(was)
	r := recover()
	if r == nil {
		return
	}
	fault, ok := r.(interface {
		runtime.Error
		Addr() uintptr
	})
	if !ok {
		panic(r)
	}
	*err = fmt.Errorf("%w: %w", ErrMapFault, fault)
}

// roundUp rounds n up to a multiple of to.
func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }
