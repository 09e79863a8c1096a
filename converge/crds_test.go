// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const gizmoCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: KIND.example.com
spec:
  group: example.com
  names: {kind: KIND, plural: KIND}
  scope: Namespaced
  versions: []
`

// TestCRDs reads definitions from files and directories, and names file and document of each problem.
func TestCRDs(t *testing.T) {
	crd := func(kind string) string { return strings.ReplaceAll(gizmoCRD, "KIND", kind) }
	for name, c := range map[string]struct {
		files map[string]string
		paths []string
		want  []string
		err   []string
	}{
		"several documents, of which some are of other kinds": {
			files: map[string]string{"a.yaml": crd("gizmos") + "---\n# nothing\n---\nkind: Kustomization\n---\n" + crd("gears")},
			paths: []string{"a.yaml"},
			want:  []string{"gizmos.example.com", "gears.example.com"},
		},
		"a directory, without subdirectories": {
			files: map[string]string{
				"b.yml": crd("gears"), "a.yaml": crd("gizmos"), "kustomization.yaml": "resources: []\n",
				"README.md": "no manifest", "patches/a.yaml": crd("gizmos"),
			},
			paths: []string{"."},
			want:  []string{"gizmos.example.com", "gears.example.com"},
		},
		"all problems": {
			files: map[string]string{
				"a.yaml": crd("gizmos") + "---\n" + strings.Replace(crd("gears"), "versions: []", "versions: 3", 1),
				"b.yaml": "kind: [\n",
				"c.yaml": strings.Replace(crd("bolts"), "/v1", "/v1beta1", 1),
				"d.yaml": crd("gizmos"),
			},
			paths: []string{".", "absent"},
			err: []string{
				"a.yaml: document 2 (line 11): json: cannot unmarshal number into Go struct field",
				"b.yaml: document 1 (line 1): malformed YAML",
				"c.yaml: document 1 (line 1): kind: CustomResourceDefinition of apiextensions.k8s.io/v1beta1 is not supported",
				"d.yaml: document 1 (line 1): metadata.name: CustomResourceDefinition \"gizmos.example.com\" is already in",
				"absent: no such file or directory",
			},
		},
		"nothing": {
			files: map[string]string{"a.yaml": "kind: Secret\n"}, paths: []string{"a.yaml"},
			err: []string{"CRDs: no CustomResourceDefinition in "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range c.files {
				path := filepath.Join(dir, filepath.FromSlash(file))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			paths := make([]string, 0, len(c.paths))
			for _, path := range c.paths {
				paths = append(paths, filepath.Join(dir, path))
			}
			crds, err := CRDs(paths...)
			var names []string
			for _, crd := range crds {
				names = append(names, crd.GetName())
			}
			if diff := cmp.Diff(c.want, names); diff != "" {
				t.Errorf("definitions (-want +got):\n%s", diff)
			}
			if (err != nil) != (len(c.err) > 0) {
				t.Fatalf("got error %v, want %q", err, c.err)
			}
			for _, want := range c.err {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not contain %q:\n%v", want, err)
				}
			}
		})
	}
}
