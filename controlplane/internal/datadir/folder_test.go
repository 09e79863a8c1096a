// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestTemporaryIsPrivateAndRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folder, err := Temporary()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(folder.Path())
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o700 {
		t.Errorf("mode = %o, want 700", got)
	}
	if err := os.WriteFile(folder.File("data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := folder.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Release: %v, want not exist", err)
	}
}

func TestTemporaryFallsBackFromALongPath(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 80))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	folder, err := Temporary()
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Release()
	if length := len(folder.File("etcd.sock")); length > 103 {
		t.Errorf("socket path has %d bytes, want at most 103: %s", length, folder.File("etcd.sock"))
	}
}

func TestTemporaryErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv("TMPDIR", missing)
	_, err := Temporary()
	want := "temporary directory " + missing +
		": no such file or directory: set TMPDIR to a directory that you can write to"
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestOpenKeepsDataAndRefusesASecondOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "dir")
	first, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(first.File("data"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "in use by another control plane (process ") {
		t.Errorf("second Open: got %v, want an error with the process that uses it", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	second, err := Open(dir)
	if err != nil {
		t.Fatalf("Open after Release: %v", err)
	}
	defer second.Release()
	if content, err := os.ReadFile(second.File("data")); err != nil || string(content) != "kept" {
		t.Errorf("data = %q, %v, want it kept", content, err)
	}
}

func TestOpenErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(file)
	if want := "dir " + file + ": not a directory"; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestSweep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	parent := os.TempDir()
	old := time.Now().Add(-time.Minute)
	makeFolder := func(name string, locked bool, modified time.Time) string {
		path := filepath.Join(parent, name)
		if err := os.MkdirAll(filepath.Join(path, "etcd"), 0o700); err != nil {
			t.Fatal(err)
		}
		if locked {
			if err := os.WriteFile(filepath.Join(path, lockName), []byte("1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(path, modified, modified); err != nil {
			t.Fatal(err)
		}
		return path
	}
	alive, err := Temporary()
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Release()
	outside := t.TempDir()
	link := filepath.Join(parent, "trueup-controlplane-link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		reason, path string
		want         bool
	}{
		{"its owner runs", alive.Path(), true},
		{"its owner ended and released the lock", makeFolder("trueup-controlplane-dead", true, time.Now()), false},
		{"its owner ended before it locked the directory", makeFolder("trueup-controlplane-unlocked", false, old), false},
		{"its owner may be about to lock it", makeFolder("trueup-controlplane-fresh", false, time.Now()), true},
		{"not the directory of a control plane", makeFolder("other-dead", true, old), true},
		{"a link is not followed", link, true},
		{"the target of a link", outside, true},
	}
	sweep(parent)
	for _, c := range cases {
		if _, err := os.Stat(c.path); (err == nil) != c.want {
			t.Errorf("%s (%s): exists = %t, want %t", filepath.Base(c.path), c.reason, err == nil, c.want)
		}
	}
}

// Concurrent starts, which sweep and create, must neither fail nor lose a directory.
func TestConcurrentTemporaryFolders(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			folder, err := Temporary()
			if err != nil {
				t.Error(err)
				return
			}
			sweep(os.TempDir())
			if _, err := os.Stat(folder.File(lockName)); err != nil {
				t.Errorf("directory of a running owner: %v", err)
			}
			if err := folder.Release(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}
