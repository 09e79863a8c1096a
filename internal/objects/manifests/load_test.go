// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/internal/objects/manifests"
)

var rules = manifests.Rules{
	Kinds: []schema.GroupVersionKind{
		{Group: "demo.trueup.dev", Version: "v1", Kind: "Website"},
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "Namespace"},
	},
	Namespace: "default",
}

func TestParse(t *testing.T) {
	tests := map[string]struct {
		content string
		want    []string // place, kind, namespace/name
		wantErr []string // lines
	}{
		"one document": {
			content: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n",
			want:    []string{"f.yaml: document 1 (line 1) ConfigMap default/a"},
		},
		"several documents with separators and comments": {
			content: `# a header
---
# the first
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: ns}
--- # the second
apiVersion: v1
kind: Namespace
metadata: {name: ns}
---
---
# nothing
---
apiVersion: demo.trueup.dev/v1
kind: Website
metadata: {name: c}
---
`,
			want: []string{
				"f.yaml: document 1 (line 4) ConfigMap ns/a",
				"f.yaml: document 2 (line 8) Namespace /ns",
				"f.yaml: document 3 (line 15) Website default/c",
			},
		},
		"dashes in text do not separate": {
			content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    ---\n    y\n",
			want:    []string{"f.yaml: document 1 (line 1) ConfigMap default/a"},
		},
		"JSON": {
			content: `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`,
			want:    []string{"f.yaml: document 1 (line 1) ConfigMap default/a"},
		},
		"nothing": {content: "# nothing\n"},
		"malformed, with the line of the file": {
			content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: [\n" +
				"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n",
			want: []string{
				"f.yaml: document 1 (line 1) ConfigMap default/a",
				"f.yaml: document 3 (line 8) ConfigMap default/b",
			},
			wantErr: []string{"f.yaml: document 2 (line 5): malformed YAML: line 6: did not find expected node content"},
		},
		"a field twice": {
			content: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\n",
			wantErr: []string{`f.yaml: document 1 (line 1): malformed YAML: line 5: key "name" already set in map`},
		},
		"not an object": {
			content: "hello\n",
			wantErr: []string{
				"f.yaml: document 1 (line 1): malformed: a document must be an object with fields, such as apiVersion and kind",
			},
		},
		"unknown kind": {
			content: "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n",
			wantErr: []string{
				"f.yaml: document 1 (line 1): kind: Pod of v1 is not supported; " +
					"supported kinds: Website (demo.trueup.dev/v1), ConfigMap (v1), Namespace (v1)",
			},
		},
		"all missing fields are listed": {
			content: "kind: 3\nmetadata: {namespace: 4}\n",
			wantErr: []string{
				"f.yaml: document 1 (line 1): apiVersion: must be a non-empty string; kind: must be a non-empty string; " +
					"metadata.name: must be a non-empty string; metadata.namespace: must be a string",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			documents, err := manifests.Parse("f.yaml", []byte(tc.content), rules)
			if diff := cmp.Diff(tc.wantErr, lines(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, summarize(documents)); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParse_dropsFieldsOfTheServer(t *testing.T) {
	documents, err := manifests.Parse("f.yaml", []byte(`
apiVersion: v1
kind: ConfigMap
metadata: {name: a, uid: x, resourceVersion: "3", creationTimestamp: null, managedFields: [], labels: {part: z}}
status: {}
`), rules)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": "a", "namespace": "default", "labels": map[string]any{"part": "z"}},
	}
	if diff := cmp.Diff(want, documents[0].Object.Object); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	configMap := func(name string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n", name)
	}
	single := write("single.yaml", configMap("a"))
	write("folder/2.yml", configMap("c"))
	write("folder/1.yaml", configMap("b"))
	write("folder/3.json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d"}}`)
	write("folder/README.md", "not a manifest")
	write("folder/deeper/4.yaml", "not: read")
	again := write("again.yaml", "---\n"+strings.Replace(configMap("a"), "name: a", "name: a, namespace: default", 1))
	write("empty/README.md", "nothing here")

	tests := map[string]struct {
		paths   []string
		want    []string
		wantErr []string
	}{
		"a file and a directory": {
			paths: []string{single, filepath.Join(dir, "folder")},
			want: []string{
				"single.yaml: document 1 (line 1) ConfigMap default/a",
				"folder/1.yaml: document 1 (line 1) ConfigMap default/b",
				"folder/2.yml: document 1 (line 1) ConfigMap default/c",
				"folder/3.json: document 1 (line 1) ConfigMap default/d",
			},
		},
		"missing": {
			paths:   []string{filepath.Join(dir, "absent.yaml")},
			wantErr: []string{"absent.yaml: no such file or directory"},
		},
		"a directory without manifests": {
			paths:   []string{filepath.Join(dir, "empty")},
			wantErr: []string{"empty: the directory has no .yaml, .yml or .json files"},
		},
		"the same object twice": {
			paths: []string{single, again},
			want: []string{
				"single.yaml: document 1 (line 1) ConfigMap default/a",
				"again.yaml: document 1 (line 2) ConfigMap default/a",
			},
			wantErr: []string{
				`again.yaml: document 1 (line 2): metadata.name: ConfigMap "a" is already in DIR/single.yaml: document 1 (line 1)`,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			documents, err := manifests.Load(tc.paths, rules)
			relative := func(all []string) []string {
				for i := range all {
					all[i] = strings.ReplaceAll(strings.TrimPrefix(all[i], dir+"/"), dir, "DIR")
				}
				return all
			}
			if diff := cmp.Diff(tc.wantErr, relative(lines(err))); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, relative(summarize(documents))); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadFS(t *testing.T) {
	documents, err := manifests.LoadFS(fstest.MapFS{
		"b.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n")},
		"a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")},
	}, rules)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a.yaml: document 1 (line 1) ConfigMap default/a", "b.yaml: document 1 (line 1) ConfigMap default/b"}
	if diff := cmp.Diff(want, summarize(documents)); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
}

func lines(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func summarize(documents []manifests.Document) []string {
	var result []string
	for _, d := range documents {
		result = append(
			result, fmt.Sprintf("%s %s %s/%s", d.Where(), d.Object.GetKind(), d.Object.GetNamespace(), d.Object.GetName()),
		)
	}
	return result
}
