// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"
)

const gadgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          status:
            type: object
            properties:
              conditions:
                type: array
                items:
                  type: object
                  properties:
                    type: {type: string}
                    status: {type: string}
                    reason: {type: string}
                    message: {type: string}
                    observedGeneration: {type: integer}
                    lastTransitionTime: {type: string, nullable: true}
`

// gadget is a custom kind.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

func (g *gadget) DeepCopyObject() runtime.Object {
	out := *g
	g.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = slices.Clone(g.Status.Conditions)
	return &out
}

type gadgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []gadget `json:"items"`
}

func (l *gadgetList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for _, item := range l.Items {
		out.Items = append(out.Items, *item.DeepCopyObject().(*gadget))
	}
	return &out
}

var gadgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}

// gadgetScenario reconciles a gadget.
func gadgetScenario(t *testing.T, do func(ctx context.Context, e Env, obj *gadget) error) Scenario {
	t.Helper()
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	s.AddKnownTypeWithName(gadgetKind, &gadget{})
	s.AddKnownTypeWithName(gadgetKind.GroupVersion().WithKind("GadgetList"), &gadgetList{})
	metav1.AddToGroupVersion(s, gadgetKind.GroupVersion())
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(gadgetDefinition), crd); err != nil {
		t.Fatal(err)
	}
	return Scenario{
		Scheme: s, For: &gadget{}, CRDs: []client.Object{crd}, Owns: []client.Object{&corev1.Secret{}},
		New: func(e Env) reconcile.Reconciler {
			return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				obj := &gadget{}
				if err := e.Client.Get(ctx, req.NamespacedName, obj); err != nil || obj.DeletionTimestamp != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				return reconcile.Result{}, do(ctx, e, obj)
			})
		},
		Steps: Lifecycle(&gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}),
	}
}

// reportsFailures creates a Secret and reports failures in a condition, after which the conditions have another order.
// If forgets is set, the reason of a failure remains.
func reportsFailures(forgets bool) func(ctx context.Context, e Env, obj *gadget) error {
	return func(ctx context.Context, e Env, obj *gadget) error {
		before := obj.DeepCopyObject().(*gadget)
		set := func(name string, status metav1.ConditionStatus, reason string) {
			meta.SetStatusCondition(&obj.Status.Conditions, metav1.Condition{Type: name, Status: status, Reason: reason})
		}
		child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: obj.Namespace, Name: obj.Name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(obj, gadgetKind)},
		}}
		failure := e.Client.Get(ctx, client.ObjectKeyFromObject(child), &corev1.Secret{})
		if client.IgnoreNotFound(failure) == nil && failure != nil {
			failure = e.Client.Create(ctx, child)
		}
		switch {
		case failure != nil:
			set("Degraded", metav1.ConditionTrue, "Error")
		case forgets && meta.FindStatusCondition(obj.Status.Conditions, "Degraded") != nil:
			set("Available", metav1.ConditionTrue, "Ok")
		default:
			set("Available", metav1.ConditionTrue, "Ok")
			set("Degraded", metav1.ConditionFalse, "Ok")
		}
		if reflect.DeepEqual(before.Status, obj.Status) {
			return failure
		}
		return errors.Join(failure, e.Client.Status().Update(ctx, obj))
	}
}

// TestOrderOfConditions has conditions whose order depends on what has happened.
func TestOrderOfConditions(t *testing.T) {
	converges(t, gadgetScenario(t, reportsFailures(false)), DefaultOptions())
	if f := foundIn(t, gadgetScenario(t, reportsFailures(true))); f == nil || f.Violation.Oracle != OracleEndState ||
		!strings.Contains(f.Violation.String(), "status.conditions[type=Degraded]") {
		t.Errorf("got %v, want a condition that differs", f)
	}
}
