// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// A file that is longer has more than one theme. The files of all modules count, but not those that are generated or
// only read by tests.
func TestFilesAreShort(t *testing.T) {
	const most = 400
	checked := 0
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "testdata"):
			return fs.SkipDir
		case !entry.Type().IsRegular() || path.Ext(name) != ".go" || strings.HasPrefix(entry.Name(), "zz_generated"):
			return nil
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		checked++
		if lines := bytes.Count(content, []byte("\n")); lines > most {
			t.Errorf("%s has %d lines, want at most %d: split it by theme", name, lines, most)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 1000 {
		t.Errorf("checked only %d files", checked)
	}
}
