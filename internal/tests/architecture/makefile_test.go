// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// makeTest matches a command of the Makefile that runs tests by name: its directory, the start of the name, and the
// arguments after it.
var makeTest = regexp.MustCompile(`(?m)^\t(?:cd (\S+) && )?.* -(?:run|fuzz) '\^((?:Test|Fuzz)\w+)[^']*'(.*)$`)

// TestMakefileRunsTests finds commands of the Makefile that run no test, for example because a test was renamed: go
// test succeeds if no name matches.
func TestMakefileRunsTests(t *testing.T) {
	commands := makeTest.FindAllStringSubmatch(read(t, "Makefile"), -1)
	if len(commands) < 8 {
		t.Errorf("found only %d commands", len(commands))
	}
	for _, command := range commands {
		directory, name := command[1], command[2]
		packages := []string{}
		for _, argument := range strings.Fields(command[3]) {
			if strings.HasPrefix(argument, "./") {
				packages = append(packages, path.Join(directory, argument))
			}
		}
		if len(packages) == 0 {
			packages = []string{directory}
		}
		for _, p := range packages {
			if !declaresTest(t, p, name) {
				t.Errorf("the Makefile runs %s in %s, which does not exist", name, p)
			}
		}
	}
}

// declaresTest reports whether a package has a test whose name starts with prefix.
func declaresTest(t *testing.T, directory, prefix string) bool {
	t.Helper()
	for _, file := range sourceFiles(t) {
		if path.Dir(file.path) == directory && strings.HasSuffix(file.path, "_test.go") &&
			strings.Contains(file.content, "\nfunc "+prefix) {
			return true
		}
	}
	return false
}
