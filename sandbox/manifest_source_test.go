// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newCRD returns a definition of a kind like "Teapot" in the group example.com, with the versions v1 and v1beta1.
func newCRD(kind string) *apiextensionsv1.CustomResourceDefinition {
	plural := strings.ToLower(kind) + "s"
	schema := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", XPreserveUnknownFields: new(true),
	}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true, Storage: true, Schema: schema},
				{Name: "v1beta1", Served: true, Schema: schema},
				{Name: "v1alpha1", Schema: schema},
			},
		},
	}
}

// newCRDText returns the same definition as a document that is valid YAML and JSON.
func newCRDText(t *testing.T, kind string) string {
	t.Helper()
	crd := newCRD(kind)
	crd.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	text, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func TestReadDefinitions(t *testing.T) {
	dir := t.TempDir()
	a, b, c := newCRDText(t, "A"), newCRDText(t, "B"), newCRDText(t, "C")
	files := map[string]string{
		"one.yaml":                a,
		"several.yml":             "# Copyright\n---\n" + a + "--- # the second\n\n# only a comment\n---\n" + b + "---\n",
		"several.json":            a + b,
		"deep/x/c.yaml":           c,
		"deep/b.YAML":             b,
		"deep/README.md":          "no manifest",
		"deep/kustomization.yaml": "resources:\n- b.YAML\n",
		"deep/role.yaml":          "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: x\n",
		"windows.yaml":            "---\r\n" + strings.ReplaceAll(a, "\n", "\r\n") + "---\r\n" + b,
	}
	writeFiles(t, dir, files)
	in := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	memory := fstest.MapFS{"crds/a.yaml": {Data: []byte(a)}, "crds/notes.txt": {Data: []byte("text")}}
	cases := map[string]struct {
		sources []any
		want    []string
	}{
		"nothing":   {nil, nil},
		"an object": {[]any{newCRD("A")}, []string{"source 1 (as.example.com)"}},
		"objects": {
			[]any{[]*apiextensionsv1.CustomResourceDefinition{newCRD("A"), newCRD("B")}},
			[]string{"source 1: element 0 (as.example.com)", "source 1: element 1 (bs.example.com)"},
		},
		"a file": {[]any{in("one.yaml")}, []string{in("one.yaml") + ": document 1 (as.example.com)"}},
		"several documents": {
			[]any{in("several.yml")},
			[]string{in("several.yml") + ": document 1 (as.example.com)", in("several.yml") + ": document 3 (bs.example.com)"},
		},
		"Windows line ends": {
			[]any{in("windows.yaml")},
			[]string{in("windows.yaml") + ": document 1 (as.example.com)", in("windows.yaml") + ": document 2 (bs.example.com)"},
		},
		"JSON": {
			[]any{in("several.json")},
			[]string{in("several.json") + ": document 1 (as.example.com)", in("several.json") + ": document 2 (bs.example.com)"},
		},
		"a directory, recursively": {
			[]any{in("deep")},
			[]string{in("deep/b.YAML") + ": document 1 (bs.example.com)", in("deep/x/c.yaml") + ": document 1 (cs.example.com)"},
		},
		"a file system": {
			[]any{newCRD("B"), memory},
			[]string{"source 1 (bs.example.com)", "source 2: crds/a.yaml: document 1 (as.example.com)"},
		},
		"an identical definition twice": {[]any{newCRD("A"), newCRD("A")}, []string{"source 1 (as.example.com)"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			definitions, err := readDefinitions(c.sources)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range definitions {
				got = append(got, d.origin)
				if _, ok := d.object.Object["status"]; ok {
					t.Errorf("%s: the status was not removed", d.origin)
				}
				if d.object.GetName() != d.crd.Name || len(d.crd.Spec.Versions) != 3 {
					t.Errorf("%s: read as %+v", d.origin, d.crd)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("definitions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadDefinitionsMistakes(t *testing.T) {
	dir := t.TempDir()
	a := newCRDText(t, "A")
	files := map[string]string{
		"malformed.yaml": a + "---\nkind: CustomResourceDefinition\n  spec: x\n",
		"duplicate.yaml": "kind: A\nkind: B\n",
		"list.yaml":      "- a\n- b\n",
		"other.yaml":     "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n",
		"old.yaml": "apiVersion: apiextensions.k8s.io/v1beta1\n" +
			"kind: CustomResourceDefinition\nmetadata:\n  name: x\n",
		"nameless.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n",
		"type.yaml": "apiVersion: apiextensions.k8s.io/v1\n" +
			"kind: CustomResourceDefinition\nmetadata:\n  name: x\nspec:\n  versions: {}\n",
		"empty.yaml":       "# nothing\n---\n",
		"malformed.json":   "{\"kind\": \"A\",\n  \"spec\": ]}",
		"void/README.md":   "no manifest",
		"several/1.yaml":   "kind: A\nkind: B\n",
		"several/2.yaml":   "apiVersion: v1\nkind: CustomResourceDefinition\n",
		"typo.yaml":        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinitoin\n",
		"different/1.yaml": a,
		"different/2.yaml": strings.Replace(a, "Namespaced", "Cluster", 1),
	}
	writeFiles(t, dir, files)
	var nothing *apiextensionsv1.CustomResourceDefinition
	cases := map[string]struct {
		source any
		want   []string
	}{
		"malformed": {"malformed.yaml", []string{"malformed.yaml: document 2: ", "line 4"}},
		"a key twice": {
			"duplicate.yaml",
			[]string{"duplicate.yaml: document 1: ", `key "kind" already set`, "line 2"},
		},
		"not an object": {"list.yaml", []string{"list.yaml: document 1: not an object"}},
		"another kind": {
			"other.yaml",
			[]string{
				"the sources contain no CustomResourceDefinition",
			},
		},
		"an old version": {
			"old.yaml",
			[]string{`old.yaml: document 1: apiVersion "apiextensions.k8s.io/v1beta1"`},
		},
		"a misspelled kind":         {"typo.yaml", []string{`typo.yaml: document 1: `, `kind "CustomResourceDefinitoin": want`}},
		"no name":                   {"nameless.yaml", []string{"nameless.yaml: document 1: metadata.name is required"}},
		"a wrong type":              {"type.yaml", []string{"type.yaml: document 1: ", "spec.versions"}},
		"no document":               {"empty.yaml", []string{"empty.yaml: contains no document"}},
		"malformed JSON":            {"malformed.json", []string{"malformed.json: document 1: line 2: "}},
		"no file":                   {"missing.yaml", []string{"missing.yaml: no such file"}},
		"a directory without files": {"void", []string{"void: contains no .yaml, .yml or .json file"}},
		"all of them at once": {
			"several",
			[]string{"1.yaml: document 1: ", `2.yaml: document 1: apiVersion "v1", kind "CustomResourceDefinition"`},
		},
		"two versions of the same": {
			"different",
			[]string{
				"2.yaml: document 1 (as.example.com): defines as.example.com differently from ",
				"1.yaml: document 1 (as.example.com)",
			},
		},
		"nil": {nothing, []string{"source 1: nil"}},
		"nil among others": {
			[]*apiextensionsv1.CustomResourceDefinition{newCRD("A"), nil},
			[]string{"source 1: element 1: nil"},
		},
		"another type":         {42, []string{"source 1: cannot read definitions from a int"}},
		"a broken file system": {brokenFS{}, []string{"source 1: ", fs.ErrPermission.Error()}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if file, ok := c.source.(string); ok {
				c.source = filepath.Join(dir, file)
			}
			// The mistakes are found before a request is sent: this sandbox has no API.
			err := (&Sandbox{}).InstallCRDs(t.Context(), c.source)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not contain %q:\n%v", want, err)
				}
			}
		})
	}
}

type brokenFS struct{}

func (brokenFS) Open(string) (fs.File, error) { return nil, fs.ErrPermission }

func TestReadDefinitionsKeepsUnknownFields(t *testing.T) {
	path := filepath.Join(t.TempDir(), "crd.json")
	text := strings.Replace(newCRDText(t, "A"), `"scope":`, `"future": true, "scope":`, 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	definitions, err := readDefinitions([]any{path})
	if err != nil {
		t.Fatal(err)
	}
	spec, ok := definitions[0].object.Object["spec"].(map[string]any)
	if !ok {
		t.Fatalf("no spec in %v", definitions[0].object.Object)
	}
	if diff := cmp.Diff(
		[]string{"future", "group", "names", "scope", "versions"}, slices.Sorted(maps.Keys(spec)),
	); diff != "" {
		t.Errorf("fields of the spec (-want +got):\n%s", diff)
	}
}
