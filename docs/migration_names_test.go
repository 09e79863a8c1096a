// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// typed returns the packages as the compiler sees them, by the last element of their import paths.
func typed(t *testing.T, paths ...string) map[string]*types.Package {
	t.Helper()
	list := exec.CommandContext(
		t.Context(), "go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, paths...)...,
	)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, export, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = export
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	packages := map[string]*types.Package{}
	for _, path := range paths {
		made, err := imports.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		packages[made.Name()] = made
	}
	return packages
}

// hasMember reports whether a type has an exported field or method of that name, also by embedding.
func hasMember(object types.Object, member string) bool {
	found, _, _ := types.LookupFieldOrMethod(object.Type(), true, object.Pkg(), member)
	return found != nil && found.Exported()
}

var without = regexp.MustCompile("^without ((?:`\\w+`(?:, )?)+): ")

// Each name of the App SDK has a row, and the compiler knows those that a row says we have, with their fields and
// methods. testdata/grafana-app-sdk-names.txt has the names: a line for each, followed by its fields and methods.
func TestMigrationNames_AppSDK(t *testing.T) {
	ours := typed(
		t, "trueup.dev/operator", "trueup.dev/simple", "trueup.dev/app", "trueup.dev/resource", "trueup.dev/logging",
	)
	members, missing := map[string][]string{}, map[string]bool{}
	for line := range strings.Lines(readFile(t, "testdata/grafana-app-sdk-names.txt")) {
		fields := strings.Fields(line)
		members[fields[0]], missing[fields[0]] = fields[1:], true
	}
	const page = "migration/grafana-app-sdk-names.md"
	sections := strings.Split(readFile(t, page), "\n## ")
	for _, section := range sections[1:] {
		pkg, _, _ := strings.Cut(section, "\n")
		for line := range strings.Lines(section) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			if len(cells) != 3 || !strings.HasPrefix(line, "| `") {
				continue
			}
			for _, name := range code.FindAllStringSubmatch(cells[0], -1) {
				full := pkg + "." + name[1]
				if !missing[full] {
					t.Errorf("%s: the App SDK has no %s, or it has two rows", page, full)
				}
				delete(missing, full)
				for _, problem := range wrongVerdict(ours[pkg], name[1], members[full], cells[1], strings.TrimSpace(cells[2])) {
					t.Errorf("%s: %s: %s", page, full, problem)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("%s: no row for %s", page, name)
	}
}

var code = regexp.MustCompile("`([^`]+)`")

// wrongVerdict returns what a row says of a name of the App SDK with these members, and is not true of our package.
func wrongVerdict(ours *types.Package, name string, members []string, verdict, text string) []string {
	var object types.Object
	if ours != nil {
		object = ours.Scope().Lookup(name)
	}
	switch {
	case verdict != "have" && verdict != "use instead" && verdict != "no":
		return []string{fmt.Sprintf("unknown verdict %q", verdict)}
	case verdict == "have" && object == nil:
		return []string{"the row says that we have it, and we do not"}
	case verdict != "have" && object != nil:
		return []string{fmt.Sprintf("we have it, and the row says %q", verdict)}
	case object == nil:
		return nil
	}
	problems, absent := []string{}, map[string]bool{}
	if list := without.FindStringSubmatch(text); list != nil {
		for _, member := range code.FindAllStringSubmatch(list[1], -1) {
			absent[member[1]] = true
		}
	}
	for _, member := range members {
		switch has := hasMember(object, member); {
		case has && absent[member]:
			problems = append(problems, fmt.Sprintf("we have its %s, and the row says that we do not", member))
		case !has && !absent[member]:
			problems = append(problems, fmt.Sprintf("we do not have its %s, and the row does not say so", member))
		}
	}
	return problems
}
