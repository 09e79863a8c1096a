// SPDX-License-Identifier: Apache-2.0

//nolint:staticcheck,govet // tests the deprecated names
package generations

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/reconcilers"
)

// The documented examples of v0.6 to v0.11: the parent is called the resource, and its type is a field.

type webhookRules = []admissionregistrationv1.RuleWithOperations

const webhookRulesKey reconcilers.StashKey = "webhook-rules"

func deriveWebhookRules(
	rules webhookRules,
) reconcilers.SubReconciler[*admissionregistrationv1.ValidatingWebhookConfiguration] {
	return &reconcilers.SyncReconciler[*admissionregistrationv1.ValidatingWebhookConfiguration]{
		Name: "DeriveWebhookRules",
		Sync: func(ctx context.Context, _ *admissionregistrationv1.ValidatingWebhookConfiguration) error {
			reconcilers.StashValue(ctx, webhookRulesKey, rules)
			return nil
		},
	}
}

// The fields ListType and SemanticEquals are omitted: no objects are listed, and objects are compared after the merge.
func admissionTriggerReconciler(
	c reconcilers.Config, rules webhookRules,
) *reconcilers.AggregateReconciler[*admissionregistrationv1.ValidatingWebhookConfiguration] {
	return &reconcilers.AggregateReconciler[*admissionregistrationv1.ValidatingWebhookConfiguration]{
		Name: "AdmissionTrigger",
		Type: &admissionregistrationv1.ValidatingWebhookConfiguration{},
		Request: reconcile.Request{
			NamespacedName: types.NamespacedName{
				Name: "my-trigger",
			},
		},
		Reconciler: reconcilers.Sequence[*admissionregistrationv1.ValidatingWebhookConfiguration]{
			deriveWebhookRules(rules),
		},
		DesiredResource: func(
			ctx context.Context, resource *admissionregistrationv1.ValidatingWebhookConfiguration,
		) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
			resource.Webhooks[0].Rules, _ = reconcilers.RetrieveValue(ctx, webhookRulesKey).(webhookRules)
			return resource, nil
		},
		MergeBeforeUpdate: func(current, desired *admissionregistrationv1.ValidatingWebhookConfiguration) {
			current.Webhooks[0].Rules = desired.Webhooks[0].Rules
		},
		Sanitize: func(resource *admissionregistrationv1.ValidatingWebhookConfiguration) interface{} {
			return resource.Webhooks[0].Rules
		},

		Config: c,
	}
}

func TestV11_AggregateReconciler(t *testing.T) {
	trigger := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "my-trigger", CreationTimestamp: metav1.Unix(1, 0)},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{{Name: "trigger.example.com"}},
	}
	other := trigger.DeepCopy()
	other.Name = "another"
	w := newWorld(t, trigger, other)
	rules := webhookRules{
		{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{
				APIGroups:   []string{"apps"},
				APIVersions: []string{"*"},
				Resources:   []string{"deployments"},
			},
		},
	}
	r := admissionTriggerReconciler(w.Config, rules)
	reconcileRoot(t, r, other)
	equal(t, "events for another", 0, len(w.Events))
	reconcileRoot(t, r, trigger)
	w.get(t, trigger)
	equal(t, "rules", rules, trigger.Webhooks[0].Rules)
	equal(t, "other fields are unchanged", "trigger.example.com", trigger.Webhooks[0].Name)
	reconcileRoot(t, r, trigger)
	equal(t, "events", []string{`Normal Updated: Updated ValidatingWebhookConfiguration "my-trigger"`}, w.Events)
}

func TestV11_WithConfig(t *testing.T) {
	function := newFunction()
	w, elsewhere := newWorld(t, function), newWorld(t)
	reconcileBelow(t, w, &reconcilers.WithConfig[*Function]{
		Reconciler: reconcilers.Sequence[*Function]{
			&reconcilers.SyncReconciler[*Function]{
				Sync: func(ctx context.Context, resource *Function) error {
					original, err := reconcilers.RetrieveOriginalConfig(ctx)
					equal(t, "original config", true, original == w.Config)
					equal(t, "current config", true, reconcilers.RetrieveConfigOrDie(ctx) == elsewhere.Config)
					if err != nil {
						return err
					}
					return reconcilers.AddFinalizer(ctx, resource, "test.finalizer")
				},
			},
			&reconcilers.ChildReconciler[*Function, *corev1.ConfigMap, *corev1.ConfigMapList]{
				SkipOwnerReference: true,
				ListOptions: func(context.Context, *Function) []client.ListOption {
					return []client.ListOption{client.InNamespace("elsewhere")}
				},
				OurChild: func(resource *Function, child *corev1.ConfigMap) bool { return child.Name == resource.Name },
				DesiredChild: func(_ context.Context, resource *Function) (*corev1.ConfigMap, error) {
					return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: resource.Name}}, nil
				},
				MergeBeforeUpdate:          func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
				ReflectChildStatusOnParent: func(context.Context, *Function, *corev1.ConfigMap, error) {},
			},
		},

		Config: func(context.Context, reconcilers.Config) (reconcilers.Config, error) {
			return elsewhere.Config, nil
		},
	}, function)
	elsewhere.get(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "square"}})
	equal(t, "patches here", 1, len(w.Patches))
	equal(t, "events elsewhere", 0, len(elsewhere.Events))
}

// admissionProjectorWebhook projects the bindings of a namespace, which are ConfigMaps here, into workloads of any
// kind.
func admissionProjectorWebhook(c reconcilers.Config) *reconcilers.AdmissionWebhookAdapter[*unstructured.Unstructured] {
	return &reconcilers.AdmissionWebhookAdapter[*unstructured.Unstructured]{
		Name: "AdmissionProjectorWebhook",
		Type: &unstructured.Unstructured{},
		Reconciler: &reconcilers.SyncReconciler[*unstructured.Unstructured]{
			Sync: func(ctx context.Context, workload *unstructured.Unstructured) error {
				c := reconcilers.RetrieveConfigOrDie(ctx)

				bindings := &corev1.ConfigMapList{}
				if err := c.List(ctx, bindings, client.InNamespace(workload.GetNamespace())); err != nil {
					return err
				}
				for i := range bindings.Items {
					if err := project(&bindings.Items[i], workload); err != nil {
						return err
					}
				}
				return nil
			},
		},
		Config: c,
	}
}

func project(binding *corev1.ConfigMap, workload *unstructured.Unstructured) error {
	containers, _, err := unstructured.NestedSlice(workload.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return err
	}
	for i := range containers {
		container, ok := containers[i].(map[string]any)
		if !ok {
			return fmt.Errorf("container %d is not an object", i)
		}
		container["env"] = []any{map[string]any{"name": "SERVICE_BINDING_ROOT", "value": binding.Data["root"]}}
	}
	return unstructured.SetNestedSlice(workload.Object, containers, "spec", "template", "spec", "containers")
}

func TestV11_AdmissionWebhookAdapter(t *testing.T) {
	binding := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"},
		Data:       map[string]string{"root": "/bindings"},
	}
	hook := admissionProjectorWebhook(newWorld(t, binding).Config).Build()
	webhook.NewServer(webhook.Options{}).Register("/interceptor", hook)

	workload, err := json.Marshal(map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata":   map[string]any{"namespace": "default", "name": "shop"},
		"spec": map[string]any{
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "web"}}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID:       "r-1",
		Operation: admissionv1.Create,
		Namespace: "default",
		Name:      "shop",
		Object:    runtime.RawExtension{Raw: workload},
	}}
	response := hook.Handler.Handle(t.Context(), request)
	equal(t, "allowed", true, response.Allowed)
	equal(t, "patches", []jsonpatch.Operation{{
		Operation: "add",
		Path:      "/spec/template/spec/containers/0/env",
		Value:     []any{map[string]any{"name": "SERVICE_BINDING_ROOT", "value": "/bindings"}},
	}}, response.Patches)
}

// A ResourceManager is an UpdatingObjectManager. It is used directly when ChildReconciler does not fit.
func TestV11_ResourceManager(t *testing.T) {
	manager := &reconcilers.ResourceManager[*corev1.ConfigMap]{
		Type:         &corev1.ConfigMap{},
		Finalizer:    "test.finalizer",
		TrackDesired: true,
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Data = desired.Data
		},
		Sanitize: func(child *corev1.ConfigMap) interface{} { return child.Name },
	}
	var desired *corev1.ConfigMap
	managed := &reconcilers.SyncReconciler[*Function]{
		SyncDuringFinalization: true,
		Sync: func(ctx context.Context, resource *Function) error {
			if err := manager.Setup(ctx); err != nil {
				return err
			}
			actual := &corev1.ConfigMap{}
			err := reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, client.ObjectKey{Namespace: "default", Name: "managed"}, actual)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			_, err = manager.Manage(ctx, resource, actual, desired)
			return err
		},
	}
	function := newFunction()
	w := newWorld(t, function)
	steps := []struct {
		desired *corev1.ConfigMap
		event   string
	}{
		{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "managed"}}, "Created"},
		{
			&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "managed"},
				Data:       map[string]string{"a": "b"},
			},
			"Updated",
		},
		{nil, "Deleted"},
	}
	want := []string{`Normal FinalizerPatched: Patched finalizer "test.finalizer"`}
	for _, step := range steps {
		desired = step.desired
		root := &reconcilers.ResourceReconciler[*Function]{Reconciler: managed, SkipStatusUpdate: true, Config: w.Config}
		reconcileRoot(t, root, function)
		want = append(want, fmt.Sprintf(`Normal %[1]s: %[1]s ConfigMap "managed"`, step.event))
	}
	reconcileRoot(
		t, &reconcilers.ResourceReconciler[*Function]{Reconciler: managed, SkipStatusUpdate: true, Config: w.Config},
		function,
	)
	want = append(want, want[0])
	equal(t, "events", want, w.Events)
	observers, err := w.Tracker.GetObservers(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "managed"}},
	)
	equal(t, "tracked", true, err == nil && len(observers) == 1)
	w.get(t, function)
	equal(t, "finalizers", 0, len(function.Finalizers))
}
