// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// page writes the page of a failure where the flag has it, and returns a line for people that tells where that is.
// Without the flag there is neither.
func page(t *testing.T, f *Failure) string {
	if *htmlFlag == "" {
		return ""
	}
	file, err := f.writePage(pageFile(*htmlFlag, t.Name()))
	if err != nil {
		return fmt.Sprintf("the page cannot be written: %v\n", err)
	}
	return "page: " + file + "\n"
}

// pageFile is the file itself, or one for the test in a directory.
func pageFile(flag, test string) string {
	if strings.EqualFold(filepath.Ext(flag), ".html") {
		return flag
	}
	return filepath.Join(flag, filepath.FromSlash(test)+".html")
}

// writePage writes the page, and returns where it is: tests run in the directory of their package, which is not where
// people are.
func (f *Failure) writePage(file string) (string, error) {
	content, err := f.HTML()
	if err != nil {
		return "", err
	}
	file, err = filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	return file, os.WriteFile(file, content, 0o644)
}
