// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/walk"
)

// The extensions of files with the replay strings of failures of [Run] and [States].
const (
	savedSchedule = ".sched"
	savedWalk     = ".walk"
)

// savedRun is a failure that was saved.
type savedRun struct{ file, replay string }

// directory returns the directory of the saved failures of a test.
func directory(t *testing.T) string {
	return filepath.Join("testdata", "converge", filepath.FromSlash(t.Name()))
}

// save saves a failure of Run or States, and returns the file.
func save(t *testing.T, f *Failure) (string, error) {
	sum, extension := sha256.Sum256([]byte(f.Replay)), savedSchedule
	if strings.HasPrefix(f.Replay, walk.Version+":") {
		extension = savedWalk
	}
	file := filepath.Join(directory(t), hex.EncodeToString(sum[:6])+extension)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	return file, os.WriteFile(file, []byte("# "+phrase.FirstLine(f.Violation.String())+"\n"+f.Replay+"\n"), 0o644)
}

// saveLine saves a failure, and returns a line that names the file.
func saveLine(t *testing.T, f *Failure) string {
	file, err := save(t, f)
	if err != nil {
		return fmt.Sprintf("cannot save the failure: %v\n", err)
	}
	return "saved in " + file + "\n"
}

// savedRuns returns the saved failures of a test, in the order of the names of the files.
func savedRuns(t *testing.T, extension string) []savedRun {
	// Not filepath.Glob, because names of tests may contain its metacharacters.
	entries, err := os.ReadDir(directory(t))
	if err != nil {
		return nil
	}
	var runs []savedRun
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != extension {
			continue
		}
		file := filepath.Join(directory(t), entry.Name())
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				runs = append(runs, savedRun{file, line})
			}
		}
	}
	return runs
}

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
