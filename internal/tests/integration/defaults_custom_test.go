// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/reconcilers"
)

var gizmoKind = schema.GroupVersionKind{Group: "integration.trueup.dev", Version: "v1", Kind: "Gizmo"}

// gizmoCRD has defaults in spec and status.
func gizmoCRD() *apiextensionsv1.CustomResourceDefinition {
	type props = apiextensionsv1.JSONSchemaProps
	withDefault := func(kind, value string) props {
		return props{Type: kind, Default: &apiextensionsv1.JSON{Raw: []byte(value)}}
	}
	object := func(properties map[string]props) props { return props{Type: "object", Properties: properties} }
	ports := props{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: new(object(map[string]props{
		"number": {Type: "integer"}, "protocol": withDefault("string", `"TCP"`),
	}))}}
	strategy := object(map[string]props{"type": withDefault("string", `"Rolling"`)})
	strategy.Default = &apiextensionsv1.JSON{Raw: []byte(`{}`)}
	root := object(map[string]props{
		"spec": object(map[string]props{
			"size": withDefault("string", `"small"`), "replicas": withDefault("integer", `1`), "color": {Type: "string"},
			"ports":    ports,
			"strategy": strategy,
		}),
		"status": object(map[string]props{
			"phase": {Type: "string"}, "attempts": withDefault("integer", `0`), "mode": withDefault("string", `"auto"`),
		}),
	})
	definition := crd(gizmoKind, "gizmos")
	definition.Spec.Versions[0].Schema.OpenAPIV3Schema = &root
	return definition
}

// gizmo is a Go type for the kind.
type gizmo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec gizmoSpec `json:"spec,omitempty"`
}

type gizmoSpec struct {
	Size     string      `json:"size,omitempty"`
	Replicas *int32      `json:"replicas,omitempty"`
	Color    string      `json:"color,omitempty"`
	Ports    []gizmoPort `json:"ports,omitempty"`
	Strategy struct {
		Type string `json:"type,omitempty"`
	} `json:"strategy,omitzero"`
}

type gizmoPort struct {
	Number   int32  `json:"number,omitempty"`
	Protocol string `json:"protocol,omitempty"`
}

func (g *gizmo) DeepCopyObject() runtime.Object {
	c := *g
	g.DeepCopyInto(&c.ObjectMeta)
	if g.Spec.Replicas != nil {
		c.Spec.Replicas = new(*g.Spec.Replicas)
	}
	c.Spec.Ports = append([]gizmoPort(nil), g.Spec.Ports...)
	return &c
}

// TestUnseenCustomResourcesAreInSync creates custom resources whose definition has defaults. A manager that starts
// after that writes nothing.
func TestUnseenCustomResourcesAreInSync(t *testing.T) {
	e := newEnv(t)
	e.Scheme().AddKnownTypeWithName(gizmoKind, &gizmo{})
	metav1.AddToGroupVersion(e.Scheme(), gizmoKind.GroupVersion())
	check := func(kind string, want, writes, afterDrift int) {
		t.Helper()
		if diff := cmp.Diff([]int{0, want}, []int{writes, afterDrift}); diff != "" {
			t.Errorf("updates of %s, and after a change by hand (-want +got):\n%s", kind, diff)
		}
	}
	merge := func(current, desired *gizmo) { current.Spec = desired.Spec }
	ports := []gizmoPort{{Number: 80}}
	w, d := manageNew(e, &gizmo{ObjectMeta: named("typed"), Spec: gizmoSpec{Ports: ports}}, merge, func(g *gizmo) {
		g.Spec.Color = "by hand"
	})
	check("a typed Gizmo", 1, w, d)
	w, d = manageNew(e, &gizmo{ObjectMeta: named("scaled"), Spec: gizmoSpec{Ports: ports}}, merge, func(g *gizmo) {
		g.Spec.Replicas = new(int32(5))
	})
	check("a typed Gizmo whose default is changed", 1, w, d)

	plain := newUnstructured(gizmoKind, "unstructured")
	plain.Object["spec"] = map[string]any{"ports": []any{map[string]any{"number": int64(80)}}}
	w, d = manageNew(e, plain, func(current, desired *unstructured.Unstructured) {
		current.Object["spec"] = desired.Object["spec"]
	}, func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["color"] = "by hand" })
	check("an unstructured Gizmo", 1, w, d)
}

// gizmos is a controller that assigns the whole status of its resources, without the fields that the server defaults.
func gizmos(passes *atomic.Int64) setup {
	type object = *unstructured.Unstructured
	return func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		return (&reconcilers.ResourceReconciler[object]{
			Type: newUnstructured(gizmoKind, ""),
			Reconciler: &reconcilers.SyncReconciler[object]{Sync: func(_ context.Context, gizmo object) error {
				color, _, err := unstructured.NestedString(gizmo.Object, "spec", "color")
				gizmo.Object["status"] = map[string]any{"phase": "Painted " + color}
				passes.Add(1)
				return err
			}},
			Config: c,
		}).SetupWithManager(ctx, mgr)
	}
}

func TestStatusWithServerDefaultsIsWrittenOnce(t *testing.T) {
	e := newEnv(t)
	var passes atomic.Int64
	resource := newUnstructured(gizmoKind, "painted")
	resource.Object["spec"] = map[string]any{"color": "red"}
	painted := func(color string) func(*unstructured.Unstructured) error {
		return statusIs(map[string]any{"phase": "Painted " + color, "attempts": int64(0), "mode": "auto"})
	}
	again := func() {
		t.Helper()
		for range 4 {
			before := passes.Load()
			e.touch(resource)
			e.Eventually(func() error {
				if passes.Load() == before {
					return fmt.Errorf("no reconcile for a change of the resource")
				}
				return nil
			})
		}
	}
	wrote := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, e.traffic.of("gizmos/status")); diff != "" {
			t.Errorf("writes of the status %s (-want +got):\n%s", when, diff)
		}
	}

	stop := e.start(gizmos(&passes))
	e.Add(resource)
	until(e, resource, painted("red"))
	again()
	wrote("when nothing changes", "PUT")
	stop()
	e.start(gizmos(&passes))
	again()
	wrote("after a restart", "PUT")
	change(e, resource, func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["color"] = "blue" })
	until(e, resource, painted("blue"))
	again()
	wrote("after a change", "PUT", "PUT")
}
