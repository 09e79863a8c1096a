// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/examples/database/backup"
)

var request = backup.Request{ID: "1234", Source: "shop.default.svc:5432", Target: "backups/default/shop"}

func ExampleDirectory() {
	dir, err := os.MkdirTemp("", "backups")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	complete, err := backup.NewDirectory(dir).Take(context.Background(), request)
	fmt.Println(complete, err)
	content, err := os.ReadFile(filepath.Join(dir, "backups/default/shop/1234.json"))
	fmt.Println(string(content), err)
	// Output:
	// true <nil>
	// {"id":"1234","source":"shop.default.svc:5432","target":"backups/default/shop"} <nil>
}

func ExampleFake() {
	var fake backup.Fake
	for range 2 {
		fmt.Println(fake.Take(context.Background(), request))
	}
	fmt.Println(len(fake.Taken()))
	// Output:
	// false <nil>
	// true <nil>
	// 1
}

// A complete backup is not taken again: the file does not change, and no draft remains.
func TestDirectory_takesABackupOnce(t *testing.T) {
	dir := t.TempDir()
	directory := backup.NewDirectory(dir)
	later := request
	later.Source = "gone.default.svc:5432"
	for _, r := range []backup.Request{request, later} {
		if complete, err := directory.Take(t.Context(), r); !complete || err != nil {
			t.Fatalf("Take() = %v, %v", complete, err)
		}
	}
	files, err := os.ReadDir(filepath.Join(dir, request.Target))
	if err != nil || len(files) != 1 {
		t.Errorf("files = %v, error %v, want one", files, err)
	}
	content, err := os.ReadFile(filepath.Join(dir, request.Target, "1234.json"))
	want := `{"id":"1234","source":"shop.default.svc:5432","target":"backups/default/shop"}`
	if diff := cmp.Diff(want, string(content)); diff != "" || err != nil {
		t.Errorf("content, error %v (-want +got):\n%s", err, diff)
	}
}

// An account is changed in place, and can be deleted twice.
func TestAccounts(t *testing.T) {
	for name, system := range map[string]backup.System{
		"directory": backup.NewDirectory(t.TempDir()), "fake": &backup.Fake{},
	} {
		t.Run(name, func(t *testing.T) {
			expect := func(when, want string) {
				t.Helper()
				target, found, err := system.Account(t.Context(), "1234")
				if target != want || found != (want != "") || err != nil {
					t.Errorf("%s: Account() = %q, %v, %v, want %q", when, target, found, err, want)
				}
			}
			expect("at first", "")
			for _, target := range []string{"here", "there"} {
				if err := system.SetAccount(t.Context(), "1234", target); err != nil {
					t.Fatal(err)
				}
				expect("after SetAccount", target)
			}
			for range 2 {
				if err := system.DeleteAccount(t.Context(), "1234"); err != nil {
					t.Fatal(err)
				}
			}
			expect("after DeleteAccount", "")
		})
	}
}

func TestDirectory_staysInItsDirectory(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "inside")
	for _, target := range []string{"..", "/", "a/../.."} {
		r := request
		r.Target = target
		if complete, err := backup.NewDirectory(inside).Take(t.Context(), r); complete || err == nil {
			t.Errorf("target %q: Take() = %v, %v, want an error", target, complete, err)
		}
	}
	if files, err := os.ReadDir(dir); len(files) != 0 || err != nil {
		t.Errorf("files = %v, error %v, want none", files, err)
	}
}

func TestDirectory_reportsAFailure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if complete, err := backup.NewDirectory(file).Take(t.Context(), request); complete || err == nil {
		t.Errorf("Take() = %v, %v, want an error", complete, err)
	}
}

func TestFake_FailWith(t *testing.T) {
	var fake backup.Fake
	want := errors.New("the bucket is full")
	fake.FailWith(want)
	if complete, err := fake.Take(t.Context(), request); complete || !errors.Is(err, want) || len(fake.Taken()) != 0 {
		t.Errorf("Take() = %v, %v; taken: %v", complete, err, fake.Taken())
	}
	fake.FailWith(nil)
	for i, want := range []bool{false, true, true} {
		if complete, err := fake.Take(t.Context(), request); complete != want || err != nil {
			t.Errorf("call %d: Take() = %v, %v, want %v", i+1, complete, err, want)
		}
	}
	fake.FailWith(want) // a complete backup cannot fail
	if complete, err := fake.Take(t.Context(), request); !complete || err != nil {
		t.Errorf("Take() = %v, %v", complete, err)
	}
}
