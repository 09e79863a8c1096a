// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPackagesAreListed compares the lists of packages in the doc comment of the module and in the table of contents of
// the guides with the packages that users import.
func TestPackagesAreListed(t *testing.T) {
	public := slices.DeleteFunc(libraryPackages(t), func(path string) bool { return strings.Contains(path, "/internal/") })
	for _, directory := range libraryModules {
		public = append(public, module+"/"+directory)
	}
	slices.Sort(public)
	for path, pattern := range map[string]string{
		"doc.go":         `\[(trueup\.dev/[a-z/]+)\]:`,
		"docs/README.md": "(?m)^\\| `(trueup\\.dev/[a-z/]+)`",
	} {
		listed := []string{}
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, path), -1) {
			listed = append(listed, match[1])
		}
		slices.Sort(listed)
		if diff := cmp.Diff(public, listed); diff != "" {
			t.Errorf("packages listed in %s (-want +got):\n%s", path, diff)
		}
	}
}

// TestLayoutIsDrawn compares the picture in docs/architecture.md with the layers.
func TestLayoutIsDrawn(t *testing.T) {
	const path = "docs/architecture.md"
	_, picture, ok := strings.Cut(read(t, path), "```text layers\n")
	picture, _, closed := strings.Cut(picture, "```")
	if !ok || !closed {
		t.Fatalf("%s has no picture of the layers", path)
	}
	drawn := [][]string{}
	for line := range strings.Lines(picture) {
		layer := strings.Fields(line)
		slices.Sort(layer)
		drawn = append(drawn, layer)
	}
	want := [][]string{}
	for _, layer := range slices.Backward(layers) {
		want = append(want, slices.Sorted(slices.Values(layer)))
	}
	if diff := cmp.Diff(want, drawn); diff != "" {
		t.Errorf("layers drawn in %s, from the top down (-want +got):\n%s", path, diff)
	}
}

// TestLayersExist checks that no layer has a directory that no longer exists.
func TestLayersExist(t *testing.T) {
	for _, directory := range slices.Concat(layers...) {
		if _, err := os.Stat("../../../" + directory); err != nil {
			t.Error(err)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile("../../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
