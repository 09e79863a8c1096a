// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
)

// sourceFile is a Go or Markdown file of any module.
type sourceFile struct {
	path    string // relative to the root of the repository
	content string
}

func (f sourceFile) isGo() bool { return path.Ext(f.path) == ".go" }

// sourceFiles returns all Go and Markdown files, except generated files and those in testdata.
func sourceFiles(t *testing.T) []sourceFile {
	t.Helper()
	files, err := readSources()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 1000 {
		t.Fatalf("found only %d files", len(files))
	}
	return files
}

var readSources = sync.OnceValues(func() (files []sourceFile, err error) {
	root := os.DirFS("../../..")
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if entry.Name() == ".git" || entry.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		f := sourceFile{path: name}
		if !entry.Type().IsRegular() || !f.isGo() && path.Ext(name) != ".md" ||
			strings.HasPrefix(entry.Name(), "zz_generated") {
			return nil
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		f.content = string(content)
		files = append(files, f)
		return nil
	})
	return files, err
})
