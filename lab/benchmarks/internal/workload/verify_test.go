// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/lab/benchmarks/internal/api"
	"trueup.dev/lab/benchmarks/internal/lab"
)

// converged returns two parents with a child each that have converged.
func converged(t *testing.T) (parents []*api.Widget, children []*corev1.ConfigMap, scheme *runtime.Scheme) {
	t.Helper()
	scheme = runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		w := parent(i)
		w.UID, w.Generation = types.UID(w.Name), 3
		w.Status.ObservedGeneration, w.Status.Child = 3, sourceName
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}, Data: w.Spec.Data}
		if err := controllerutil.SetControllerReference(w, child, scheme); err != nil {
			t.Fatal(err)
		}
		parents, children = append(parents, w), append(children, child)
	}
	return parents, children, scheme
}

func TestVerify(t *testing.T) {
	for name, test := range map[string]struct {
		spoil                  func(parents []*api.Widget, children []*corev1.ConfigMap)
		wantChildren, wantSeen string
	}{
		"converged": {
			spoil: func([]*api.Widget, []*corev1.ConfigMap) {},
		},
		"a cluster's own ConfigMap": {
			spoil: func(_ []*api.Widget, children []*corev1.ConfigMap) { children[2].Name = "kube-root-ca.crt" },
		},
		"a stale status": {
			spoil:        func(parents []*api.Widget, _ []*corev1.ConfigMap) { parents[1].Status.ObservedGeneration = 2 },
			wantChildren: "widget widget-000001: the status is of generation 2, want 3",
			wantSeen:     "widget widget-000001: the status is of generation 2, want 3",
		},
		"an extra parent": {
			spoil: func(parents []*api.Widget, children []*corev1.ConfigMap) {
				parents[2].Name, children[2].Name = "another", "another"
				children[2].Data, children[2].OwnerReferences = parents[2].Spec.Data, children[0].OwnerReferences
				parents[2].UID = parents[0].UID
			},
			wantChildren: "3 widgets exist, want 2",
			wantSeen:     "3 widgets exist, want 2",
		},
		"no child": {
			spoil:        func(_ []*api.Widget, children []*corev1.ConfigMap) { children[0].Name = "" },
			wantChildren: "widget widget-000000: child widget-000000 does not exist",
		},
		"a child of another owner": {
			spoil:        func(_ []*api.Widget, children []*corev1.ConfigMap) { children[0].OwnerReferences[0].UID = "other" },
			wantChildren: "widget widget-000000: child widget-000000 has another owner",
		},
		"other data": {
			spoil:        func(_ []*api.Widget, children []*corev1.ConfigMap) { children[1].Data = map[string]string{"a": "b"} },
			wantChildren: "widget widget-000001: child widget-000001 has different data",
		},
		"an extra child": {
			spoil:        func(_ []*api.Widget, children []*corev1.ConfigMap) { children[2].Name = "stray" },
			wantChildren: "1 ConfigMaps have no owner, for example stray",
		},
		"not seen": {
			spoil:    func(parents []*api.Widget, _ []*corev1.ConfigMap) { parents[0].Status.Child = "" },
			wantSeen: "widget widget-000000: the status does not name its source",
		},
	} {
		t.Run(name, func(t *testing.T) {
			parents, children, scheme := converged(t)
			// Objects without a name are not created.
			parents = append(parents, parents[0].DeepCopy())
			parents[2].Name = ""
			children = append(children, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace}})
			test.spoil(parents, children)
			builder := fake.NewClientBuilder().WithScheme(scheme)
			for _, w := range parents {
				addNamed(builder, w)
			}
			for _, child := range children {
				addNamed(builder, child)
			}
			live := builder.Build()
			expect(t, "verifyChildren", verifyChildren(t.Context(), live, 2, childName), test.wantChildren)
			expect(t, "verifySeen", verifySeen(t.Context(), live, 2), test.wantSeen)
		})
	}
}

func addNamed(builder *fake.ClientBuilder, obj client.Object) {
	if obj.GetName() != "" {
		builder.WithObjects(obj)
	}
}

func expect(t *testing.T, what string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: error %v, want one with %q", what, err, want)
	}
}
