// SPDX-License-Identifier: Apache-2.0

package specs

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	schema := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(text, "\t", "  ")), schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// lines lists properties, with their contexts, and their meaningful values.
func lines(properties []Property) []string {
	var out []string
	for _, p := range properties {
		line := p.Path.String()
		for _, change := range p.Context {
			line += " if " + change.String()
		}
		line += ":"
		for _, v := range p.Values {
			if !v.Doubtful {
				line += " " + v.String()
			}
		}
		out = append(out, line)
	}
	return out
}

func TestProperties(t *testing.T) {
	for name, test := range map[string]struct {
		schema  string
		content any
		want    []string
	}{
		"bounds limit integers": {
			"{type: integer, minimum: 1, maximum: 3}", int64(1), []string{"spec.x: 2 3 unset"},
		},
		"a large bound is not tried, because controllers may create as many objects": {
			"{type: integer, minimum: 0, maximum: 100000}", int64(7), []string{"spec.x: 8 9 6 1 2 0 unset"},
		},
		"the default is the base of an integer that is not set": {
			"{type: integer, default: 5}", nil, []string{"spec.x: 6 7 4 1 2 0"},
		},
		"all values of an enum": {
			"{type: string, enum: [a, b, c]}", "b", []string{`spec.x: "a" "c" unset`},
		},
		"a pattern rules out texts": {
			"{type: string, pattern: '^[A-Z]{2,3}-[0-9]+$'}", "AA-1", []string{`spec.x: "BBB-22" "CCC-333" unset`},
		},
		"a format has its own texts": {
			"{type: string, format: date-time}", nil, []string{`spec.x: "2030-01-01T00:00:00Z" "2031-01-01T00:00:00Z"`},
		},
		"the present value shows the meaning": {
			"{type: string}", "10m", []string{`spec.x: "20s" "1m" "2h" unset`},
		},
		"quantities have the pattern of Kubernetes": {
			`{anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true, pattern: '^(\+|-)?(([0-9]+(\.[0-9]*)?)` +
				`|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'}`,
			"1Gi",
			[]string{`spec.x: "2Gi" "3Gi" "500Mi" 1 2 0 unset`},
		},
		"keys of maps are changed, removed and added": {
			"{type: object, additionalProperties: {type: string}}",
			map[string]any{"a.b/c": "1"},
			[]string{`spec.x: unset`, `spec.x[a.b/c]: "1-2" "other" unset`, `spec.x.added: "one" "two"`},
		},
		"items of lists are added, removed, reordered and changed": {
			"{type: array, items: {type: integer}, maxItems: 3}",
			[]any{int64(5), int64(6)},
			[]string{"spec.x: [5,6,8] [8,5,6] [5] [6] [6,5] unset", "spec.x[0]: 6 7 4 1 2 0"},
		},
		"an object that is not set is set first": {
			"{type: object, required: [name], properties: {name: {type: string}, port: {type: integer, minimum: 1}}}", nil,
			[]string{
				`spec.x: {"name":"one"}`,
				`spec.x.name if spec.x = {"name":"one"}: "one-2" "other"`,
				`spec.x.port if spec.x = {"name":"one"}: 1 2`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			schema := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"metadata": {Type: "object"},
				"spec": {
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"x": *parse(t, test.schema)},
				},
				"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"x": {Type: "string"}}},
			}}
			spec := map[string]any{}
			if test.content != nil {
				spec["x"] = test.content
			}
			properties, left := Properties(schema, map[string]any{"spec": spec})
			if diff := cmp.Diff(test.want, lines(properties)); diff != "" || len(left) > 0 {
				t.Errorf("left %v (-want +got):\n%s", left, diff)
			}
		})
	}
}

// A pod template has thousands of properties. Controllers pass on most of them in the same way.
func TestPodTemplatesHaveFewProperties(t *testing.T) {
	type custom struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	content := map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "main", "image": "example.com/app:v1"}},
	}}}}
	properties, _ := Properties(SchemaOf(reflect.TypeFor[custom]()), content)
	got := lines(properties)
	for _, want := range []string{
		`spec.template.spec.containers[0].image: "example.com/app:v2" "example.com/other:v3" unset`,
		`spec.template.spec.containers[0].resources.requests if spec.template.spec.containers[0].resources = {}: {"memory":"2Gi"} {"cpu":"500Mi","memory":"3Gi"}`,
	} {
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("no %s in\n%s", want, strings.Join(got, "\n"))
		}
	}
	if len(got) > 60 {
		t.Errorf("%d properties", len(got))
	}
}

func TestChangesOfMissingParentsDoNothing(t *testing.T) {
	content := map[string]any{"spec": map[string]any{"list": []any{"a", "b"}}}
	for path, want := range map[string]bool{
		"spec.x": true, "spec.list[1]": true, "spec.list[2]": false, "spec.y.z": false,
	} {
		got := Change{Path: ParsePath(path), Value: Value{Content: "new"}}.Apply(content)
		if got != want {
			t.Errorf("Apply(%s) = %v, want %v", path, got, want)
		}
	}
	removed := Change{Path: ParsePath("spec.list[0]"), Value: Value{Unset: true}}
	if !removed.Apply(content) {
		t.Error("an item cannot be removed")
	}
	want := map[string]any{"spec": map[string]any{"x": "new", "list": []any{"new"}}}
	if diff := cmp.Diff(want, content); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPathsCanBeParsed(t *testing.T) {
	for _, path := range []Path{
		{"spec", "ports", "[0]", "name"}, {"spec", "labels", "example.com/zone", "x"}, {"spec", "[3]", "[4]"},
	} {
		if diff := cmp.Diff(path, ParsePath(path.String())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestTextsMatchTheirPattern(t *testing.T) {
	for _, pattern := range []string{
		`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, `^(\d+d)?(\d+h)?$`, `^(http|https)://.+$`, `^\w{3}\.[^x]+$`,
	} {
		texts := fromPattern(pattern)
		if len(texts) == 0 {
			t.Errorf("%s: no texts", pattern)
		}
		for _, text := range texts {
			if !regexp.MustCompile(pattern).MatchString(text) {
				t.Errorf("%s does not match %q", pattern, text)
			}
		}
	}
}
