// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// c06 are bugs of conflicts, and of existing or missing objects, that are handled in the wrong way.
var c06 = []Entry{{
	Name: "c06-exists-taken-for-own", Class: "C6", Faults: 1,
	About: "An existing account of another owner is mistaken for the widget's own. It is never created again when that " +
		"owner deletes it.",
	Source: "tailscale, k8s-operator, tsrecorder.go, which checks whose account it is within the update: " +
		"https://github.com/tailscale/tailscale/blob/main/cmd/k8s-operator/tsrecorder.go",
	Buggy:   with(accounts, func(e converge.Env) reconcile.Reconciler { return &ignoredExists{account{e.Client}} }),
	Correct: with(accounts, func(e converge.Env) reconcile.Reconciler { return &checkedExists{account{e.Client}} }),
}, {
	Name: "c06-conflict-waits-for-event", Class: "C6", Faults: 1,
	About: "After a conflict, the controller waits for the event of the conflicting change, which a predicate drops.",
	Source: "karpenter, nodeclaim/lifecycle/controller.go, where each conflict leads to another attempt: " +
		"https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/controllers/nodeclaim/lifecycle/controller.go",
	Buggy: withSetup(settings, func(mgr manager.Manager) error {
		return watchGenerations(mgr, &waitingStatus{setting{mgr.GetClient()}})
	}),
	Correct: withSetup(settings, func(mgr manager.Manager) error {
		return watchGenerations(mgr, &returnedStatus{setting{mgr.GetClient()}})
	}),
}, {
	Name: "c06-retry-with-cache", Class: "C6", Faults: 2,
	About: "After a conflict, the object is read again from a stale cache until all attempts are used, and then the " +
		"conflict is ignored.",
	Source: "client-go, retry.RetryOnConflict, whose function has to fetch the object each time: " +
		"https://pkg.go.dev/k8s.io/client-go/util/retry#RetryOnConflict",
	Buggy: withSetup(settings, func(mgr manager.Manager) error {
		return watchGenerations(mgr, &retriedStatus{setting{mgr.GetClient()}})
	}),
	Correct: withSetup(settings, func(mgr manager.Manager) error {
		return watchGenerations(mgr, &failedStatus{setting{mgr.GetClient()}})
	}),
}, {
	Name: "c06-conditions-replaced", Class: "C6", Faults: 1,
	About: "A merge patch replaces the whole list of conditions, including an approval that the cache does not have yet.",
	Source: "kubernetes#111643, merge patches of lists without an optimistic lock: " +
		"https://github.com/kubernetes/kubernetes/issues/111643",
	Buggy: with(approvals, func(e converge.Env) reconcile.Reconciler {
		return &approval{Client: e.Client, base: client.MergeFrom}
	}),
	Correct: with(approvals, func(e converge.Env) reconcile.Reconciler {
		return &approval{Client: e.Client, base: lockedMergeFrom}
	}),
}, {
	Name: "c06-missing-taken-for-final", Class: "C6", Faults: 1,
	About: "A request fails permanently because of a secret that the cache does not have yet.",
	Source: "cert-manager#5216, requests that fail because the secret of the issuer is not in the cache yet: " +
		"https://github.com/cert-manager/cert-manager/issues/5216",
	Buggy:   with(requests, func(e converge.Env) reconcile.Reconciler { return &finalFailure{signer{e.Client}} }),
	Correct: with(requests, func(e converge.Env) reconcile.Reconciler { return &retriedFailure{signer{e.Client}} }),
}, {
	Name: "c06-version-of-another-read", Class: "C6", Faults: 1,
	About: "After a conflict, the stale object gets the resource version of the current one, and overwrites the " +
		"conflicting change.",
	Source: "API conventions, concurrency control, where changes are to be made to what was read again: " +
		"https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#concurrency-control-and-consistency",
	Buggy:   with(configs, func(e converge.Env) reconcile.Reconciler { return &configKeeper{e.Client, overwrite} }),
	Correct: with(configs, func(e converge.Env) reconcile.Reconciler { return &configKeeper{e.Client, changeCurrent} }),
}}

// accounts are widgets that need a service account.
func accounts() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.ServiceAccount{}},
		Given: []client.Object{widget("recorder", WidgetSpec{}), widget("player", WidgetSpec{})},
		// Ignoring AlreadyExists is a common idiom. Those that want an error must handle it.
		With: []converge.Fault{converge.FaultTakenUnnoticed},
	}
}

// account has a service account for a widget.
type account struct{ client.Client }

func (r *account) create(ctx context.Context, w *Widget) error {
	account := &corev1.ServiceAccount{ObjectMeta: childMeta(w, w.Name), AutomountServiceAccountToken: new(false)}
	if err := controllerutil.SetControllerReference(w, account, r.Scheme()); err != nil {
		return err
	}
	return r.Create(ctx, account)
}

type ignoredExists struct{ account }

func (r *ignoredExists) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	if err := r.create(ctx, w); err != nil && !apierrs.IsAlreadyExists(err) {
		return reconcile.Result{}, fmt.Errorf("creating the account: %w", err)
	}
	return reconcile.Result{}, nil
}

type checkedExists struct{ account }

func (r *checkedExists) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	account := &corev1.ServiceAccount{}
	err := r.Get(ctx, req.NamespacedName, account)
	switch {
	case apierrs.IsNotFound(err):
		err = r.create(ctx, w)
	case err == nil && !metav1.IsControlledBy(account, w):
		err = fmt.Errorf("account %s has another owner", account.Name)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("the account: %w", err)
	}
	return reconcile.Result{}, nil
}

// settings are widgets whose data is in a config map.
func settings() converge.Scenario {
	return converge.Scenario{
		For: &Widget{},
		Steps: converge.Lifecycle(widget("theme", WidgetSpec{Data: map[string]string{"color": "red"}}),
			func(w *Widget) { w.Spec.Data = map[string]string{"color": "blue"} }),
	}
}

// deletions passes events of deletions by other clients.
var deletions = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

// watchGenerations registers a controller that watches changes of the spec, and deletions of config maps.
func watchGenerations(mgr manager.Manager, r reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&Widget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}, builder.WithPredicates(deletions)).
		Complete(r)
}

// setting has a config map with the data of a widget.
type setting struct{ client.Client }

// apply returns the widget, or nil if it does not exist.
func (r *setting) apply(ctx context.Context, key client.ObjectKey) (*Widget, error) {
	w := &Widget{}
	if err := r.Get(ctx, key, w); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: childMeta(w, w.Name)}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, cm, func() error {
		metav1.SetMetaDataLabel(&cm.ObjectMeta, widgetLabel, w.Name)
		cm.Data = w.Spec.Data
		return controllerutil.SetControllerReference(w, cm, r.Scheme())
	})
	return w, err
}

func (r *setting) report(ctx context.Context, w *Widget) error {
	if w.Status.Phase == "Applied" && w.Status.ObservedGeneration == w.Generation {
		return nil
	}
	w.Status.Phase, w.Status.ObservedGeneration = "Applied", w.Generation
	return r.Status().Update(ctx, w)
}

type waitingStatus struct{ setting }

func (r *waitingStatus) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w, err := r.apply(ctx, req.NamespacedName)
	if w == nil || err != nil {
		return reconcile.Result{}, err
	}
	err = r.report(ctx, w)
	if apierrs.IsConflict(err) {
		log.FromContext(ctx).Info("The widget has changed, waiting for its event.")
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, err
}

type returnedStatus struct{ setting }

func (r *returnedStatus) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w, err := r.apply(ctx, req.NamespacedName)
	if w == nil || err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.report(ctx, w)
}

// reportAgain reports until no conflict occurs.
func (r *setting) reportAgain(ctx context.Context, w *Widget) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current := &Widget{}
		if err := r.Get(ctx, client.ObjectKeyFromObject(w), current); err != nil {
			return client.IgnoreNotFound(err)
		}
		if current.Generation != w.Generation {
			return nil // the next request reads it
		}
		return r.report(ctx, current)
	})
}

type retriedStatus struct{ setting }

func (r *retriedStatus) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w, err := r.apply(ctx, req.NamespacedName)
	if w == nil || err != nil {
		return reconcile.Result{}, err
	}
	err = r.reportAgain(ctx, w)
	if apierrs.IsConflict(err) {
		log.FromContext(ctx).Error(err, "Cannot report the status.")
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, err
}

type failedStatus struct{ setting }

func (r *failedStatus) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w, err := r.apply(ctx, req.NamespacedName)
	if w == nil || err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.reportAgain(ctx, w)
}

// approvals are widgets that are approved after they were created.
func approvals() converge.Scenario {
	w := widget("access", WidgetSpec{Ref: "alice"})
	approve := func(ctx context.Context, c client.Client) error {
		current := &Widget{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), current); err != nil {
			return err
		}
		apimeta.SetStatusCondition(&current.Status.Conditions, metav1.Condition{
			Type: "Approved", Status: metav1.ConditionTrue, Reason: "ByAdministrator", ObservedGeneration: current.Generation,
		})
		return c.Status().Update(ctx, current)
	}
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}},
		Steps: converge.Steps(converge.Apply(w), converge.Settle(),
			converge.Do("approve the widget", approve), converge.Settle(),
			converge.Delete(w), converge.Settle()),
	}
}

// lockedMergeFrom returns a merge patch that fails if the object has changed.
func lockedMergeFrom(obj client.Object) client.Patch {
	return client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{})
}

// approval grants access to approved widgets.
type approval struct {
	client.Client
	base func(client.Object) client.Patch
}

func (r *approval) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	if apimeta.IsStatusConditionTrue(w.Status.Conditions, "Approved") {
		grant := &corev1.ConfigMap{ObjectMeta: childMeta(w, "grant-"+w.Name)}
		if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, grant, func() error {
			metav1.SetMetaDataLabel(&grant.ObjectMeta, widgetLabel, w.Name)
			grant.Data = map[string]string{"user": w.Spec.Ref}
			return controllerutil.SetControllerReference(w, grant, r.Scheme())
		}); err != nil {
			return reconcile.Result{}, fmt.Errorf("granting access: %w", err)
		}
	}
	before := w.DeepCopy()
	changed := apimeta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
		Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Valid", ObservedGeneration: w.Generation,
	})
	if !changed {
		return reconcile.Result{}, nil
	}
	w.Status.ObservedGeneration = w.Generation
	return reconcile.Result{}, r.Status().Patch(ctx, w, r.base(before))
}

// requests are widgets that are to be signed with a key in a secret.
func requests() converge.Scenario {
	root := &corev1.Secret{ObjectMeta: meta("root"), Data: map[string][]byte{"key": []byte("secret")}}
	team := &corev1.Secret{ObjectMeta: meta("team"), Data: map[string][]byte{"key": []byte("shared")}}
	www := widget("www", WidgetSpec{Host: "www.example.com", Ref: "root"})
	wiki := widget("wiki", WidgetSpec{Host: "wiki.example.com", Ref: "team"})
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}},
		Given: []client.Object{root, www},
		Steps: converge.Steps(converge.Settle(), converge.Apply(team), converge.Apply(wiki), converge.Settle(),
			converge.Delete(www), converge.Delete(wiki), converge.Settle()),
	}
}

// signer signs the host of a widget.
type signer struct{ client.Client }

func (r *signer) sign(ctx context.Context, w *Widget, key *corev1.Secret) error {
	cm := &corev1.ConfigMap{ObjectMeta: childMeta(w, w.Name+"-certificate")}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, cm, func() error {
		metav1.SetMetaDataLabel(&cm.ObjectMeta, widgetLabel, w.Name)
		cm.Data = map[string]string{"certificate": fmt.Sprintf("%s, signed with %d bytes", w.Spec.Host, len(key.Data["key"]))}
		return controllerutil.SetControllerReference(w, cm, r.Scheme())
	})
	if err != nil {
		return fmt.Errorf("storing the certificate: %w", err)
	}
	return r.phase(ctx, w, "Issued")
}

func (r *signer) phase(ctx context.Context, w *Widget, phase string) error {
	if w.Status.Phase == phase && w.Status.ObservedGeneration == w.Generation {
		return nil
	}
	w.Status.Phase, w.Status.ObservedGeneration = phase, w.Generation
	return r.Status().Update(ctx, w)
}

type finalFailure struct{ signer }

func (r *finalFailure) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if w.Status.Phase == "Failed" && w.Status.ObservedGeneration == w.Generation {
		return reconcile.Result{}, nil
	}
	key := &corev1.Secret{}
	err := r.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Spec.Ref}, key)
	if apierrs.IsNotFound(err) {
		return reconcile.Result{}, r.phase(ctx, w, "Failed")
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.sign(ctx, w, key)
}

type retriedFailure struct{ signer }

func (r *retriedFailure) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	key := &corev1.Secret{}
	if err := r.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Spec.Ref}, key); err != nil {
		return reconcile.Result{}, fmt.Errorf("the key of widget %s: %w", w.Name, err)
	}
	return reconcile.Result{}, r.sign(ctx, w, key)
}

// configs are widgets whose data changes.
func configs() converge.Scenario {
	w := widget("a", WidgetSpec{Data: map[string]string{"color": "red"}})
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}},
		Steps: converge.Lifecycle(w, func(w *Widget) { w.Spec.Data = map[string]string{"color": "blue"} }),
	}
}

// configKeeper keeps a config map with the data of a widget. The versions differ in how they handle a conflict.
type configKeeper struct {
	client.Client

	again func(ctx context.Context, c client.Client, config *corev1.ConfigMap) error
}

func (r *configKeeper) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil || !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	config := &corev1.ConfigMap{}
	err := r.Get(ctx, req.NamespacedName, config)
	if apierrs.IsNotFound(err) {
		config = &corev1.ConfigMap{ObjectMeta: childMeta(w, w.Name), Data: w.Spec.Data}
		if err := controllerutil.SetControllerReference(w, config, r.Scheme()); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, r.Create(ctx, config)
	}
	if err != nil || maps.Equal(config.Data, w.Spec.Data) {
		return reconcile.Result{}, err
	}
	config.Data = w.Spec.Data
	if err = r.Update(ctx, config); apierrs.IsConflict(err) {
		err = r.again(ctx, r.Client, config)
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// overwrite writes the same object again, with the current resource version.
func overwrite(ctx context.Context, c client.Client, config *corev1.ConfigMap) error {
	current := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(config), current); err != nil {
		return err
	}
	config.ResourceVersion = current.ResourceVersion
	return c.Update(ctx, config)
}

// changeCurrent changes the current object.
func changeCurrent(ctx context.Context, c client.Client, config *corev1.ConfigMap) error {
	current := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(config), current); err != nil {
		return err
	}
	current.Data = config.Data
	return c.Update(ctx, current)
}
