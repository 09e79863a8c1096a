// SPDX-License-Identifier: Apache-2.0

package defaults_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/openapi"

	"trueup.dev/internal/defaults"
)

// server publishes a document for example.com/v1.
type server struct {
	discovery.DiscoveryInterface
	document string
	err      error
	asked    int
}

func (s *server) OpenAPIV3() openapi.Client { return s }
func (s *server) Paths() (map[string]openapi.GroupVersion, error) {
	s.asked++
	return map[string]openapi.GroupVersion{"apis/example.com/v1": s}, s.err
}
func (s *server) Schema(string) ([]byte, error) { return []byte(s.document), nil }
func (s *server) ServerRelativeURL() string     { return "/openapi/v3/apis/example.com/v1" }

func kindOf(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: name}
}

const document = `{"components": {"schemas": {
	"com.example.v1.Gizmo": {
		"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Gizmo"}],
		"type": "object",
		"properties": {
			"metadata": {"allOf": [{"$ref": "#/components/schemas/ObjectMeta"}]},
			"spec": {"type": "object", "properties": {
				"size": {"type": "string", "default": "small"},
				"none": {"type": "string", "nullable": true, "default": "x"},
				"weight": {"type": "integer", "default": 9007199254740993},
				"strategy": {"type": "object", "default": {}, "properties": {"type": {"default": "Rolling"}}},
				"ports": {"type": "array", "items": {"type": "object", "properties": {"protocol": {"default": "TCP"}}}},
				"pools": {"type": "object", "additionalProperties": {"type": "object", "properties": {"replicas": {"default": 1}}}},
				"free": {"type": "object", "additionalProperties": true}
			}}
		}
	},
	"com.example.v1.Plain": {
		"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Plain"}],
		"properties": {"spec": {"type": "object"}}
	},
	"com.example.v1.BuiltIn": {
		"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "BuiltIn"}],
		"properties": {"spec": {"default": {}, "allOf": [{"$ref": "#/components/schemas/Spec"}]}}
	}
}}}`

func TestSchema_Fill(t *testing.T) {
	for name, tt := range map[string]struct{ kind, given, want string }{
		"everything": {
			"Gizmo",
			`{"spec": {"ports": [{"number": 80}, {"protocol": "UDP"}],
				"pools": {"a": {}, "b": {"replicas": 0}}, "free": {"x": {}}}}`,
			`{"spec": {"size": "small", "none": "x", "weight": 9007199254740993, "strategy": {"type": "Rolling"},
				"ports": [{"number": 80, "protocol": "TCP"}, {"protocol": "UDP"}],
				"pools": {"a": {"replicas": 1}, "b": {"replicas": 0}}, "free": {"x": {}}}}`,
		},
		"null and zero": {
			"Gizmo", `{"spec": {"size": null, "none": null, "weight": 0, "strategy": {"type": ""}}}`,
			`{"spec": {"size": "small", "none": null, "weight": 0, "strategy": {"type": ""}}}`,
		},
		"no object to fill in": {"Gizmo", `{"metadata": {"name": "a"}}`, `{"metadata": {"name": "a"}}`},
		"no defaults":          {"Plain", `{"spec": {}}`, `{"spec": {}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var schemas defaults.Schemas
			s, known, fresh, err := schemas.For(&server{document: document}, kindOf(tt.kind), false)
			if err != nil || !known || !fresh {
				t.Fatalf("known %v, fresh %v, error %v", known, fresh, err)
			}
			got, want := decoded(t, tt.given), decoded(t, tt.want)
			s.Fill(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}

func decoded(t *testing.T, text string) (value any) {
	t.Helper()
	if err := utiljson.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestSchemas_For(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var schemas defaults.Schemas
		s := &server{document: document}
		ask := func(kind string, cached, wantKnown bool, wantAsked int) {
			t.Helper()
			if _, known, _, err := schemas.For(s, kindOf(kind), cached); known != wantKnown || err != nil ||
				s.asked != wantAsked {
				t.Errorf(
					"%s: got known %v, want %v; got %d requests, want %d; error %v", kind, known, wantKnown, s.asked, wantAsked, err,
				)
			}
		}
		ask("Gizmo", true, false, 0)
		ask("Gizmo", false, true, 1)
		ask("Gizmo", true, true, 1)
		ask("Plain", false, true, 1)
		ask("Other", false, false, 1)
		ask("BuiltIn", false, false, 1) // its defaults are not only in its schema
		time.Sleep(time.Hour + time.Second)
		ask("Gizmo", false, true, 2)
	})
}

func TestSchemas_ForFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var schemas defaults.Schemas
		s := &server{document: document, err: errors.New("forbidden")}
		for i, wantFresh := range []bool{true, false, false} {
			if _, known, fresh, err := schemas.For(s, kindOf("Gizmo"), false); known || fresh != wantFresh ||
				!errors.Is(err, s.err) {
				t.Errorf("call %d: known %v, fresh %v, error %v", i, known, fresh, err)
			}
		}
		s.err = nil
		time.Sleep(10*time.Minute + time.Second)
		if _, known, _, err := schemas.For(s, kindOf("Gizmo"), false); !known || err != nil || s.asked != 2 {
			t.Errorf("after ten minutes: known %v, error %v, %d requests", known, err, s.asked)
		}
	})
	var schemas defaults.Schemas
	for name, s := range map[string]discovery.DiscoveryInterface{
		"a fake":            &fakediscovery.FakeDiscovery{},
		"a broken document": &server{document: "<html>"},
		"a broken default":  &server{document: `{"components":{"schemas":{"a":{"default":[}}}}`},
	} {
		if _, known, _, err := schemas.For(s, kindOf("Gizmo"), false); known || err == nil {
			t.Errorf("%s: known %v, error %v", name, known, err)
		}
	}
	if _, known, _, err := schemas.For(
		&server{}, schema.GroupVersionKind{Group: "other.com", Version: "v1", Kind: "Gizmo"}, false,
	); known ||
		err == nil {
		t.Errorf("a group that is not served: known %v, error %v", known, err)
	}
	if _, known, _, err := schemas.For(nil, kindOf("Gizmo"), false); known || err != nil {
		t.Errorf("no server: known %v, error %v", known, err)
	}
}
