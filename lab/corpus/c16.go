// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// tagLabel has the tag of a widget that a config map is for, and cachedLabel is the label of the objects in caches.
const tagLabel, cachedLabel = "corpus.trueup.dev/tag", "corpus.trueup.dev/cached"

// c16 are bugs of a controller that does not know which objects are its own.
var c16 = []Entry{{
	Name: "c16-known-by-label", Class: "C16", Faults: 0,
	About: "A config map of a set is found by a label only. After a user has removed the label, its name is taken for " +
		"ever.",
	Source: "kubernetes, controller references, which say what belongs to a controller whatever its labels are: " +
		"https://github.com/kubernetes/design-proposals-archive/blob/main/api-machinery/controller-ref.md",
	Buggy:   with(relabelled, func(e converge.Env) reconcile.Reconciler { return &tagsByLabel{tags{e.Client}} }),
	Correct: with(relabelled, func(e converge.Env) reconcile.Reconciler { return &tagsByName{tags{e.Client}} }),
}, {
	Name: "c16-orphans-deleted", Class: "C16", Faults: 0,
	About: "The children of a widget are deleted with it, although the user has asked to leave them.",
	Source: "Kubernetes, Use Cascading Deletion, delete owner objects and orphan dependents: " +
		"https://kubernetes.io/docs/tasks/administer-cluster/use-cascading-deletion/#set-orphan-deletion-policy",
	Buggy: with(abandoned, func(e converge.Env) reconcile.Reconciler { return &cleaning{tags{e.Client}, true} }),
	// The finalizer of the garbage collector does not tell: it may be gone before the finalizer of the controller.
	Correct: with(abandoned, func(e converge.Env) reconcile.Reconciler { return &cleaning{tags{e.Client}, false} }),
}, {
	Name: "c16-foreign-deleted", Class: "C16", Faults: 0,
	About: "A widget without tags deletes all config maps that it controls, also the one that a user has created for it.",
	Source: "kubernetes, controller references, and which objects a controller may delete: " +
		"https://github.com/kubernetes/design-proposals-archive/blob/main/api-machinery/controller-ref.md",
	Buggy:   with(annexed, func(e converge.Env) reconcile.Reconciler { return &sweepingTags{tags{e.Client}, false} }),
	Correct: with(annexed, func(e converge.Env) reconcile.Reconciler { return &sweepingTags{tags{e.Client}, true} }),
}, {
	Name: "c16-renamed", Class: "C16", Faults: 0,
	About: "The name of a config map comes from the spec. When it changes, the config map with the old name is left.",
	Source: "Kubernetes, declarative management, which prunes what is no longer declared: " +
		"https://kubernetes.io/docs/tasks/manage-kubernetes-objects/declarative-config/#how-to-delete-objects",
	Buggy:   with(renamed, func(e converge.Env) reconcile.Reconciler { return &tagsByName{tags{e.Client}} }),
	Correct: with(renamed, func(e converge.Env) reconcile.Reconciler { return &sweepingTags{tags{e.Client}, true} }),
}, {
	Name: "c16-not-in-the-cache", Class: "C16", Faults: 0,
	About: "The cache has only objects with a label that the config map lacks. Each reconcile creates another one, " +
		"because the API server generates the name.",
	Source: "controller-runtime, cache.ByObject, which limits what a cache has: " +
		"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/cache#ByObject",
	Buggy: with(selective, func(e converge.Env) reconcile.Reconciler {
		return &generatedSettings{Client: e.Client, list: e.Client}
	}),
	Correct: with(selective, func(e converge.Env) reconcile.Reconciler {
		return &generatedSettings{Client: e.Client, list: e.APIReader, labels: map[string]string{cachedLabel: "yes"}}
	}),
}}

// tagged is a widget that has a config map for each tag.
func tagged() *Widget { return widget("shop", WidgetSpec{Tags: []string{"blue", "green"}}) }

func retag(tags ...string) func(*Widget) { return func(w *Widget) { w.Spec.Tags = tags } }

// relabelled is the life of a widget whose config maps lose their labels.
func relabelled() converge.Scenario {
	w := tagged()
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}},
		Steps: converge.Steps(converge.Apply(w), converge.Settle(),
			converge.ChangeOwned(w, &corev1.ConfigMap{}, "no label", func(cm *corev1.ConfigMap) { delete(cm.Labels, tagLabel) }),
			converge.Settle(), converge.Delete(w), converge.Settle()),
	}
}

// abandoned is the life of a widget that is deleted without its config maps.
func abandoned() converge.Scenario {
	w := tagged()
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}},
		Steps: converge.Steps(converge.Apply(w), converge.Settle(), converge.Orphan(w), converge.Settle()),
		Desired: func(s converge.State) error {
			var list corev1.ConfigMapList
			if err := s.List(&list); err != nil || len(list.Items) == 2 {
				return err
			}
			return fmt.Errorf("%d config maps, want 2", len(list.Items))
		},
	}
}

// annexed is the life of a widget that loses its tags, with a config map of a user.
func annexed() converge.Scenario {
	w := tagged()
	notes := &corev1.ConfigMap{ObjectMeta: meta("notes"), Data: map[string]string{"owner": "team blue"}}
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}}, ManagedFields: true,
		Steps: converge.Steps(converge.Apply(w), converge.CreateOwned(w, notes, "kubectl"), converge.Settle(),
			converge.Change(w, retag()), converge.Settle(), converge.Delete(w), converge.Settle()),
		Desired: func(s converge.State) error {
			if s.Get(tagged()) && !s.Get(&corev1.ConfigMap{ObjectMeta: meta("notes")}) {
				return fmt.Errorf("the config map of the user was deleted")
			}
			return nil
		},
	}
}

// renamed is the life of a widget whose tag, and so the name of its config map, changes.
func renamed() converge.Scenario {
	w := widget("shop", WidgetSpec{Tags: []string{"blue"}})
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}},
		Steps: converge.Lifecycle(w, retag("green")),
		Desired: func(s converge.State) error {
			var list corev1.ConfigMapList
			if err := s.List(&list); err != nil || len(list.Items) < 2 {
				return err
			}
			return fmt.Errorf("%d config maps, want one", len(list.Items))
		},
	}
}

// selective is the life of a widget with a cache that has only some config maps.
func selective() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}},
		CacheSelectors: []converge.CacheSelector{{
			Object: &corev1.ConfigMap{}, Label: labels.SelectorFromSet(labels.Set{cachedLabel: "yes"}),
		}},
		Steps: converge.Lifecycle(widget("shop", WidgetSpec{}), retag("blue")),
	}
}

// tags has a config map for each tag of a widget.
type tags struct{ client.Client }

// get returns the widget of a request, or nil.
func (r *tags) get(ctx context.Context, req reconcile.Request) (*Widget, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return w, nil
}

// desired returns the config map of a tag.
func (r *tags) desired(w *Widget, tag string) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{ObjectMeta: childMeta(w, w.Name+"-"+tag), Data: map[string]string{"tag": tag}}
	cm.Labels[tagLabel] = tag
	return cm, controllerutil.SetControllerReference(w, cm, r.Scheme())
}

// apply creates the config map of a tag, or restores its labels. It does not take back what was released.
func (r *tags) apply(ctx context.Context, w *Widget, tag string) error {
	desired, err := r.desired(w, tag)
	if err != nil {
		return err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: desired.Namespace, Name: desired.Name}}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, cm, func() error {
		if !cm.CreationTimestamp.IsZero() && !metav1.IsControlledBy(cm, w) {
			return fmt.Errorf("config map %s does not belong to widget %s", cm.Name, w.Name)
		}
		for key, value := range desired.Labels {
			metav1.SetMetaDataLabel(&cm.ObjectMeta, key, value)
		}
		cm.Data = desired.Data
		return controllerutil.SetControllerReference(w, cm, r.Scheme())
	})
	return err
}

// controlled lists the config maps that a widget controls.
func (r *tags) controlled(ctx context.Context, w *Widget) ([]corev1.ConfigMap, error) {
	list := &corev1.ConfigMapList{}
	if err := r.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(cm corev1.ConfigMap) bool { return !metav1.IsControlledBy(&cm, w) }), nil
}

type tagsByLabel struct{ tags }

func (r *tagsByLabel) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w, err := r.get(ctx, req)
	if w == nil || err != nil || !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, err
	}
	existing, err := r.controlled(ctx, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, tag := range w.Spec.Tags {
		if slices.ContainsFunc(existing, func(cm corev1.ConfigMap) bool { return cm.Labels[tagLabel] == tag }) {
			continue
		}
		cm, err := r.desired(w, tag)
		if err != nil {
			return reconcile.Result{}, err
		}
		if err := r.Create(ctx, cm); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, nil
}

// applyAll creates or updates the config map of each tag.
func (r *tags) applyAll(ctx context.Context, w *Widget) error {
	for _, tag := range w.Spec.Tags {
		if err := r.apply(ctx, w, tag); err != nil {
			return err
		}
	}
	return nil
}

type tagsByName struct{ tags }

func (r *tagsByName) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w, err := r.get(ctx, req)
	if w == nil || err != nil || !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.applyAll(ctx, w)
}

// sweepingTags also deletes the config maps of other tags. careful is set if it knows them by their label, and not only
// by their controller.
type sweepingTags struct {
	tags

	careful bool
}

func (r *sweepingTags) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w, err := r.get(ctx, req)
	if w == nil || err != nil || !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, err
	}
	if err := r.applyAll(ctx, w); err != nil {
		return reconcile.Result{}, err
	}
	existing, err := r.controlled(ctx, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	for i := range existing {
		cm := &existing[i]
		if r.careful && cm.Labels[tagLabel] == "" ||
			slices.ContainsFunc(w.Spec.Tags, func(tag string) bool { return cm.Name == w.Name+"-"+tag }) {
			continue
		}
		if err := remove(ctx, r.Client, cm); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, nil
}

// cleaning has a finalizer. If itself is set, it deletes the config maps when the widget is deleted, and else it leaves
// them to the garbage collector.
type cleaning struct {
	tags

	itself bool
}

func (r *cleaning) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w, err := r.get(ctx, req)
	if w == nil || err != nil {
		return reconcile.Result{}, err
	}
	if w.DeletionTimestamp.IsZero() {
		if controllerutil.AddFinalizer(w, finalizer) {
			if err := r.Update(ctx, w); err != nil {
				return reconcile.Result{}, err
			}
		}
		return reconcile.Result{}, r.applyAll(ctx, w)
	}
	if !controllerutil.ContainsFinalizer(w, finalizer) {
		return reconcile.Result{}, nil
	}
	if r.itself {
		list := &corev1.ConfigMapList{}
		if err := r.List(ctx, list, ofWidget(w)...); err != nil {
			return reconcile.Result{}, err
		}
		for i := range list.Items {
			if err := remove(ctx, r.Client, &list.Items[i]); err != nil {
				return reconcile.Result{}, err
			}
		}
	}
	controllerutil.RemoveFinalizer(w, finalizer)
	return reconcile.Result{}, client.IgnoreNotFound(r.Update(ctx, w))
}

// generatedSettings has a config map with a generated name.
type generatedSettings struct {
	client.Client

	list   client.Reader
	labels map[string]string
}

func (r *generatedSettings) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil || !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	list := &corev1.ConfigMapList{}
	if err := r.list.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
		return reconcile.Result{}, err
	}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], w) {
			return reconcile.Result{}, nil
		}
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, GenerateName: w.Name + "-", Labels: r.labels,
	}}
	if err := controllerutil.SetControllerReference(w, cm, r.Scheme()); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.Create(ctx, cm)
}
