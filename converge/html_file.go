// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// page writes the page of a failure to the file or directory of the flag, and returns a line that names the file.
// Without the flag it returns "".
func page(t *testing.T, f *Failure) string {
	if *htmlFlag == "" {
		return ""
	}
	file, err := f.writePage(pageFile(*htmlFlag, t.Name()))
	if err != nil {
		return fmt.Sprintf("cannot write the page: %v\n", err)
	}
	return "page: " + file + "\n"
}

// pageFile returns the file of the flag, or the file of a test in the directory of the flag.
func pageFile(flag, test string) string {
	if strings.EqualFold(filepath.Ext(flag), ".html") {
		return flag
	}
	return filepath.Join(flag, filepath.FromSlash(test)+".html")
}

// writePage writes the page, and returns its absolute path, because tests run in the directory of their package.
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
