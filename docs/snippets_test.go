// SPDX-License-Identifier: Apache-2.0

// Package docs holds the guides. Their Go snippets are in the files beside them, or in files of another module, between
// comments
//
//	// region name
//	// endregion
//
// and in the guides as
//
//	```go name
//	```
//
// so it is compiled, and most of it runs. `go test ./docs -update` copies it from the Go files to the guides. The
// README is one of these guides.
package docs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "copy the regions of the Go files to the guides")

func TestSnippets(t *testing.T) {
	regions := readRegions(t)
	_, regions["quickstart"], _ = strings.Cut(readFile(t, "../examples/quickstart/main.go"), "\n\n")
	used := map[string]bool{}
	guides := glob(t, "*.md", "migration/*.md", "converge/*.md", "../README.md")
	for _, guide := range guides {
		if guide == "start.md" {
			continue // All of it is compiled and run by TestStart.
		}
		before := readFile(t, guide)
		after, names := withBlocks(t, guide, before, "go", func(name string) (string, bool) {
			region, ok := regions[name]
			return region, ok
		})
		for _, name := range names {
			used[name] = true
		}
		if before == after {
			continue
		}
		if *update {
			if err := os.WriteFile(guide, []byte(after), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		t.Errorf("the Go of %s differs from the compiled code; `go test ./docs -update` copies it (-guide +compiled):\n%s",
			guide, cmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n")))
	}
	for name := range regions {
		if !used[name] {
			t.Errorf("no guide shows region %q", name)
		}
	}
	if len(guides) < 10 || len(used) < 20 {
		t.Errorf("found only %d guides and %d snippets", len(guides), len(used))
	}
}

// withBlocks returns the text of a guide with the content of every block of a language replaced by what find knows for
// its name, and those names. Blocks of other languages than Go may have no name, and do not change.
func withBlocks(
	t *testing.T, guide, text, language string, find func(name string) (string, bool),
) (result string, names []string) {
	t.Helper()
	var out strings.Builder
	inBlock, skip := false, false
	line := 0
	for l := range strings.Lines(text) {
		line++
		fence, isFence := strings.CutPrefix(strings.TrimSuffix(l, "\n"), "```")
		switch {
		case isFence && inBlock:
			inBlock, skip = false, false
		case isFence:
			inBlock = true
			of, name, _ := strings.Cut(fence, " ")
			if of != language || name == "" && language != "go" {
				break
			}
			content, ok := find(name)
			if !ok {
				t.Errorf("%s:%d: no content for %q", guide, line, name)
				break
			}
			names = append(names, name)
			skip = true
			out.WriteString(l)
			out.WriteString(content)
			continue
		}
		if !skip {
			out.WriteString(l)
		}
	}
	if inBlock {
		t.Errorf("%s: a block is not closed", guide)
	}
	return out.String(), names
}

// readRegions returns the regions of the Go files in and below this directory by their names, without the indentation
// that all lines have.
func readRegions(t *testing.T) map[string]string {
	t.Helper()
	regions := map[string]string{}
	for _, file := range glob(t, "*_test.go", "internal/*/*/*.go", "../observe/otel/example_test.go") {
		name, lines := "", []string{}
		for l := range strings.Lines(readFile(t, file)) {
			trimmed := strings.TrimSpace(l)
			if start, ok := strings.CutPrefix(trimmed, "// region "); ok && file != "snippets_test.go" {
				if name != "" {
					t.Fatalf("%s: region %q starts in region %q", file, start, name)
				}
				if _, ok := regions[start]; ok {
					t.Fatalf("%s: there is another region %q", file, start)
				}
				name, lines = start, nil
				continue
			}
			if trimmed == "// endregion" && file != "snippets_test.go" {
				regions[name] = dedent(lines)
				name = ""
				continue
			}
			lines = append(lines, l)
		}
		if name != "" {
			t.Fatalf("%s: region %q does not end", file, name)
		}
	}
	return regions
}

func dedent(lines []string) string {
	depth := -1
	for _, line := range lines {
		if tabs := len(line) - len(strings.TrimLeft(line, "\t")); strings.TrimSpace(line) != "" &&
			(depth < 0 || tabs < depth) {
			depth = tabs
		}
	}
	var out strings.Builder
	for _, line := range lines {
		out.WriteString(strings.TrimPrefix(line, strings.Repeat("\t", max(depth, 0))))
	}
	return strings.Trim(out.String(), "\n") + "\n"
}

func glob(t *testing.T, patterns ...string) []string {
	t.Helper()
	files := []string{}
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A difference between a snippet and the compiled code is reported, whichever of the two has changed.
func TestSnippets_aStaleOneIsNoticed(t *testing.T) {
	const guide = "Text.\n\n```go one\nold()\n```\n\n```text\nstays\n```\n"
	got, names := withBlocks(t, "guide.md", guide, "go", func(name string) (string, bool) {
		return "current()\n", name == "one"
	})
	want := fmt.Sprintf("Text.\n\n```go one\n%s\n```\n\n```text\nstays\n```\n", "current()")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"one"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// An error that a reflect function receives must reach users: no snippet ignores it.
func TestNothingShownIgnoresReflectedErrors(t *testing.T) {
	empty := regexp.MustCompile(
		`Reflect(Child|Children)StatusOnParent(WithError)?:\s+func\([^)]*\) (error )?\{(\s*return nil\s*)?\}`,
	)
	files := glob(t, "*.md", "*/*.md", "*/*/*.md", "*_test.go", "../README.md", "../examples/*/*.go",
		"../examples/*/*/*.go",
		"../examples/*/*/*/*.go", "../*/doc.go", "../*/*example*_test.go")
	for _, file := range files {
		if found := empty.FindString(readFile(t, file)); found != "" {
			t.Errorf("%s shows a reflect function that ignores the error: %s", file, found)
		}
	}
	if !empty.MatchString("ReflectChildStatusOnParent:"+" func(context.Context, *A, *B, error) {},") || len(files) < 50 {
		t.Errorf("the pattern finds nothing, or only %d files were read", len(files))
	}
}

var (
	latest     = regexp.MustCompile(`go run trueup\.dev(/[\w/]+)@latest`)
	dirOfFiles = regexp.MustCompile(`sed .*\)(/[\w/]+)`)
	belowDir   = regexp.MustCompile(`\$dir(/[\w/]+)`)
)

// The commands on the pages of the examples name programs and files that the module contains.
func TestExamplePagesNeedNoCheckout(t *testing.T) {
	checked := 0
	for _, page := range glob(t, "../README.md", "../examples/*/README.md") {
		text := readFile(t, page)
		for _, program := range latest.FindAllStringSubmatch(text, -1) {
			checked++
			if len(glob(t, ".."+program[1]+"/main.go")) == 0 {
				t.Errorf("%s: no program %s", page, program[1])
			}
		}
		for _, file := range belowDir.FindAllStringSubmatch(text, -1) {
			checked++
			dir := dirOfFiles.FindStringSubmatch(text)
			if dir == nil || len(glob(t, ".."+dir[1]+file[1]+"/*.yaml")) == 0 {
				t.Errorf("%s: no files in %s of the module", page, file[0])
			}
		}
	}
	if checked < 8 {
		t.Errorf("only %d commands were checked", checked)
	}
}
