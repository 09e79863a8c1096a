// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

const apiConventions = "https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties"

// C12: a wrong status.
var c12 = []Entry{
	{
		Name: "c12-generation-of-a-later-read", Class: "C12", Faults: 1,
		About: "The status of an older spec is written to a fresh copy of the object, with its generation. The change in " +
			"between is never reconciled.",
		Source: "Kubernetes API conventions, Typical status properties: observedGeneration is the generation that was " +
			"acted on. " +
			apiConventions,
		Buggy: with(refetchWorld, func(env converge.Env) reconcile.Reconciler {
			return &refetchReconciler{env.Client, true}
		}),
		Correct: with(refetchWorld, func(env converge.Env) reconcile.Reconciler {
			return &refetchReconciler{env.Client, false}
		}),
	},
	{
		Name: "c12-ready-before-rollout", Class: "C12",
		About: "The number of available replicas is used although it is of an older generation of the deployment. A " +
			"broken image is recorded as good.",
		Source: "kubectl rollout status, which compares metadata.generation with status.observedGeneration first for this " +
			"reason. " +
			"https://github.com/kubernetes/kubectl/blob/master/pkg/polymorphichelpers/rollout_status.go",
		Buggy: with(rolloutWorld, func(env converge.Env) reconcile.Reconciler {
			return &rolloutReconciler{env.Client, available}
		}),
		Correct: with(rolloutWorld, func(env converge.Env) reconcile.Reconciler {
			return &rolloutReconciler{env.Client, fullyRolledOut}
		}),
	},
	{
		Name: "c12-shadowed-error", Class: "C12", Faults: 1,
		About: "The deferred write of the status checks a shadowed error, and reports success after a failure.",
		Source: "Go vet, shadow: variables that are unintentionally shadowed. " +
			"https://pkg.go.dev/golang.org/x/tools/go/analysis/passes/shadow; " + apiConventions,
		Buggy:   with(dataWorld, func(env converge.Env) reconcile.Reconciler { return &shadowReconciler{env.Client} }),
		Correct: with(dataWorld, func(env converge.Env) reconcile.Reconciler { return &deferReconciler{env.Client} }),
	},
	{
		Name: "c12-transition-time", Class: "C12",
		About: "The time of the last transition changes with the message, although the status of the condition is unchanged.",
		Source: "Kubernetes KEP-1623, Standardize Conditions: lastTransitionTime is when the status of the condition " +
			"changed. " +
			"https://github.com/kubernetes/enhancements/issues/1623",
		Buggy: with(transitionWorld, func(env converge.Env) reconcile.Reconciler {
			return &transitionReconciler{env.Client, setAllAgain}
		}),
		Correct: with(transitionWorld, func(env converge.Env) reconcile.Reconciler {
			return &transitionReconciler{env.Client, setReady}
		}),
	},
	degradedStays,
	lostCondition,
	readyForEver,
	readyByOldNumbers,
}

// refetchReconciler writes its config only if the generation is a new one.
type refetchReconciler struct {
	client.Client
	latest bool
}

func (r *refetchReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	config := &corev1.ConfigMap{}
	err := r.Get(ctx, req.NamespacedName, config)
	switch {
	case err == nil && metav1.IsControlledBy(config, w) && w.Status.ObservedGeneration == w.Generation:
		return reconcile.Result{}, nil
	case err != nil && !apierrors.IsNotFound(err):
		return reconcile.Result{}, err
	}
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("apply config: %w", err)
	}
	generation := w.Generation
	return reconcile.Result{}, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := r.Get(ctx, req.NamespacedName, w); err != nil {
			return client.IgnoreNotFound(err)
		}
		before := w.DeepCopy()
		if !r.latest {
			w.Generation = generation
		}
		setReady(w, true, "Applied", "")
		return writeStatus(ctx, r.Client, before, w)
	})
}

func refetchWorld() converge.Scenario {
	w := widget("a", WidgetSpec{Data: map[string]string{"mode": "slow"}})
	return converge.Scenario{
		For:  &Widget{},
		Owns: []client.Object{&corev1.ConfigMap{}},
		Steps: converge.Steps(
			converge.Apply(w), converge.Settle(),
			converge.Change(w, withData("fast")), converge.Change(w, withData("faster")), converge.Settle(),
			converge.Delete(w), converge.Settle(),
		),
	}
}

// rolloutReconciler records the last working image.
type rolloutReconciler struct {
	client.Client
	done func(*appsv1.Deployment) bool
}

func (r *rolloutReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	deployment, err := applyDeployment(ctx, r.Client, w)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("apply deployment: %w", err)
	}
	before := w.DeepCopy()
	if r.done(deployment) {
		w.Status.Image = w.Spec.Image
		setReady(w, true, "RolledOut", "")
	} else {
		setReady(w, false, "RollingOut", "")
	}
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}

func available(d *appsv1.Deployment) bool {
	return d.Status.AvailableReplicas == *d.Spec.Replicas
}

// rolloutWorld has a user who tries a broken image.
func rolloutWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Owns:  []client.Object{&appsv1.Deployment{}},
		Steps: converge.Lifecycle(widget("a", WidgetSpec{Image: "v1", Replicas: 2}), withImage("broken"), withImage("v2")),
		World: []converge.Actor{{
			Name: "deployments", For: &appsv1.Deployment{},
			Act: func(ctx context.Context, c client.Client, obj client.Object) error {
				d := obj.(*appsv1.Deployment)
				if !d.DeletionTimestamp.IsZero() || d.Status.ObservedGeneration == d.Generation {
					return nil
				}
				d.Status = appsv1.DeploymentStatus{
					ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas,
				}
				if d.Spec.Template.Spec.Containers[0].Image != "broken" {
					d.Status.ReadyReplicas, d.Status.AvailableReplicas = *d.Spec.Replicas, *d.Spec.Replicas
				} else {
					d.Status.UnavailableReplicas = *d.Spec.Replicas
				}
				return c.Status().Update(ctx, d)
			},
		}},
		Desired: func(s converge.State) error {
			w := widget("a", WidgetSpec{})
			switch {
			case !s.Get(w):
				return nil
			case w.Spec.Image == "broken" && (isReady(w) || w.Status.Image != "v1"):
				return fmt.Errorf(
					"ready is %t and the last good image %q, although %q does not work", isReady(w), w.Status.Image, w.Spec.Image,
				)
			case w.Spec.Image != "broken" && (!isReady(w) || w.Status.Image != w.Spec.Image):
				return fmt.Errorf(
					"ready is %t and the last good image %q, although %q works", isReady(w), w.Status.Image, w.Spec.Image,
				)
			}
			return nil
		},
	}
}

type transitionReconciler struct {
	client.Client
	set func(w *Widget, status bool, reason, message string)
}

func (r *transitionReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, err
	}
	before := w.DeepCopy()
	r.set(w, true, "Applied", "mode is "+w.Spec.Data["mode"])
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}

// setAllAgain is setReady as commonly written by hand.
func setAllAgain(w *Widget, status bool, reason, message string) {
	condition := metav1.Condition{
		Type: readyCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		ObservedGeneration: w.Generation, LastTransitionTime: metav1.Now(),
	}
	if status {
		condition.Status = metav1.ConditionTrue
	}
	w.Status.ObservedGeneration = w.Generation
	for i, old := range w.Status.Conditions {
		if old.Type != readyCondition {
			continue
		}
		if old.Status != condition.Status || old.Reason != reason || old.Message != message ||
			old.ObservedGeneration != w.Generation {
			w.Status.Conditions[i] = condition
		}
		return
	}
	w.Status.Conditions = append(w.Status.Conditions, condition)
}

func transitionWorld() converge.Scenario {
	w := widget("a", WidgetSpec{Data: map[string]string{"mode": "slow"}})
	return converge.Scenario{
		For:  &Widget{},
		Owns: []client.Object{&corev1.ConfigMap{}},
		Steps: converge.Steps(
			converge.Apply(w), converge.Settle(), converge.Sleep(time.Hour),
			converge.Change(w, withData("fast")), converge.Settle(), converge.Delete(w), converge.Settle(),
		),
	}
}

var (
	degradedStays = Entry{
		Name: "c12-degraded-stays", Class: "C12", Faults: 2,
		About: "After two failures the condition Degraded is set, and it is never removed.",
		Source: "Kubernetes API conventions, Typical status properties: conditions describe the current state. " +
			apiConventions,
		Buggy:   with(degradedWorld, func(env converge.Env) reconcile.Reconciler { return &degradedReconciler{env, false} }),
		Correct: with(degradedWorld, func(env converge.Env) reconcile.Reconciler { return &degradedReconciler{env, true} }),
	}
	lostCondition = Entry{
		Name: "c12-condition-of-another-lost", Class: "C12", Faults: 1,
		About: "A merge patch without a resourceVersion replaces the whole list of conditions, including one that another " +
			"controller has added.",
		Source: "controller-runtime, client.MergeFromOptions: lists are replaced, and the lock keeps what others have " +
			"written. " +
			"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/client#MergeFromOptions",
		Buggy: with(verifiedWorld, func(env converge.Env) reconcile.Reconciler {
			return &patchReconciler{env.Client, client.MergeFrom}
		}),
		Correct: with(verifiedWorld, func(env converge.Env) reconcile.Reconciler {
			return &patchReconciler{env.Client, func(obj client.Object) client.Patch {
				return client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{})
			}}
		}),
	}
)

type shadowReconciler struct{ client.Client }

func (r *shadowReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	err := r.Get(ctx, req.NamespacedName, w)
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if applied(ctx, r.Client, w) {
		return reconcile.Result{}, nil
	}
	before := w.DeepCopy()
	defer func() {
		report(w, err)
		if failed := writeStatus(ctx, r.Client, before, w); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("apply config: %w", err)
	}
	return reconcile.Result{}, err
}

type deferReconciler struct{ client.Client }

func (r *deferReconciler) Reconcile(ctx context.Context, req reconcile.Request) (_ reconcile.Result, err error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if applied(ctx, r.Client, w) {
		return reconcile.Result{}, nil
	}
	before := w.DeepCopy()
	defer func() {
		report(w, err)
		if failed := writeStatus(ctx, r.Client, before, w); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("apply config: %w", err)
	}
	return reconcile.Result{}, nil
}

func report(w *Widget, err error) {
	if err != nil {
		setReady(w, false, "ApplyFailed", err.Error())
		return
	}
	setReady(w, true, "Applied", "")
}

// applied reports whether the status of a widget shows that everything was applied.
func applied(ctx context.Context, c client.Client, w *Widget) bool {
	config := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKeyFromObject(w), config)
	return err == nil && metav1.IsControlledBy(config, w) && isReady(w) && w.Status.ObservedGeneration == w.Generation
}

// degradedReconciler has an external disk.
type degradedReconciler struct {
	converge.Env
	recovers bool
}

func (r *degradedReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Client.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	key := "disk/" + w.Namespace + "/" + w.Name
	if !w.DeletionTimestamp.IsZero() {
		if err := r.Cloud.Delete(ctx, key); err != nil && !errors.Is(err, converge.ErrAbsent) {
			return reconcile.Result{}, err
		}
		controllerutil.RemoveFinalizer(w, finalizer)
		return reconcile.Result{}, client.IgnoreNotFound(r.Client.Update(ctx, w))
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		if err := r.Client.Update(ctx, w); err != nil {
			return reconcile.Result{}, err
		}
	}
	before := w.DeepCopy()
	if err := r.resize(ctx, key, w.Spec.Storage); err != nil {
		w.Status.Failures++
		if w.Status.Failures >= 2 {
			apimeta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
				Type: "Degraded", Status: metav1.ConditionTrue, Reason: "CloudFails", ObservedGeneration: w.Generation,
			})
		}
		setReady(w, false, "Failed", "the disk does not have the size that is wanted")
		return reconcile.Result{}, errors.Join(err, writeStatus(ctx, r.Client, before, w))
	}
	w.Status.Failures = 0
	if r.recovers {
		apimeta.RemoveStatusCondition(&w.Status.Conditions, "Degraded")
	}
	setReady(w, true, "Provisioned", "")
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}

func (r *degradedReconciler) resize(ctx context.Context, key, size string) error {
	current, err := r.Cloud.Get(ctx, key)
	if err == nil && current == size {
		return nil
	}
	if err != nil && !errors.Is(err, converge.ErrAbsent) {
		return err
	}
	return r.Cloud.Put(ctx, key, size)
}

func degradedWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Steps: converge.Lifecycle(widget("a", WidgetSpec{Storage: "1Gi"}), func(w *Widget) { w.Spec.Storage = "2Gi" }),
	}
}

// patchReconciler shares the conditions with another controller.
type patchReconciler struct {
	client.Client
	patch func(client.Object) client.Patch
}

func (r *patchReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, err
	}
	before := w.DeepCopy()
	setReady(w, true, "Applied", "")
	if equality.Semantic.DeepEqual(before.Status, w.Status) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(r.Status().Patch(ctx, w, r.patch(before)))
}

// verifiedWorld has a controller that verifies each widget once, and records that.
func verifiedWorld() converge.Scenario {
	const annotation = "corpus.trueup.dev/verified"
	return converge.Scenario{
		For:   &Widget{},
		Owns:  []client.Object{&corev1.ConfigMap{}},
		Steps: changeData(),
		World: []converge.Actor{{
			Name: "verifier", For: &Widget{},
			Act: func(ctx context.Context, c client.Client, obj client.Object) error {
				w := obj.(*Widget)
				if w.Annotations[annotation] != "" || !w.DeletionTimestamp.IsZero() {
					return nil
				}
				if apimeta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
					Type: "Verified", Status: metav1.ConditionTrue, Reason: "Passed",
				}) {
					if err := c.Status().Update(ctx, w); err != nil {
						return err
					}
				}
				metav1.SetMetaDataAnnotation(&w.ObjectMeta, annotation, "passed")
				return c.Update(ctx, w)
			},
		}},
		Desired: func(s converge.State) error {
			w := widget("a", WidgetSpec{})
			switch {
			case !s.Get(w):
				return nil
			case !isReady(w):
				return errors.New("not ready")
			case !apimeta.IsStatusConditionTrue(w.Status.Conditions, "Verified"):
				return errors.New("the condition of the verifier is lost")
			}
			return nil
		},
	}
}

var (
	// readyForEver never resets the condition.
	readyForEver = Entry{
		Name: "c12-ready-for-ever", Class: "C12", Faults: 1,
		About: "Ready is set when the deployment becomes available, and stays when it becomes unavailable.",
		Source: "Kubernetes API conventions, Typical status properties: conditions tell the latest observations of the " +
			"state. " + apiConventions,
		Buggy: with(
			steadyWorld, readyWhen(func(w *Widget, d *appsv1.Deployment) bool { return isReady(w) || fullyRolledOut(d) }),
		),
		Correct: with(steadyWorld, readyWhen(func(_ *Widget, d *appsv1.Deployment) bool { return fullyRolledOut(d) })),
	}
	// readyByOldNumbers sets the condition for an older rollout.
	readyByOldNumbers = Entry{
		Name: "c12-ready-by-old-numbers", Class: "C12",
		About: "Ready is set for a new generation based on the replicas of the old one, because the deployment's " +
			"observedGeneration is ignored.",
		Source: "kubectl rollout status, which looks at it first. " +
			"https://github.com/kubernetes/kubectl/blob/master/pkg/polymorphichelpers/rollout_status.go",
		Buggy:   with(workloadWorld, readyWhen(func(_ *Widget, d *appsv1.Deployment) bool { return available(d) })),
		Correct: with(workloadWorld, readyWhen(func(_ *Widget, d *appsv1.Deployment) bool { return fullyRolledOut(d) })),
	}
)

// steadyWorld has a widget with a deployment.
func steadyWorld() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&appsv1.Deployment{}}, World: []converge.Actor{
			converge.Deployments(converge.BecomeReady),
		},
		Given: []client.Object{widget("a", WidgetSpec{Image: "one", Replicas: 2})},
	}
}

// workloadWorld has a widget whose deployment gets another image.
func workloadWorld() converge.Scenario {
	s := steadyWorld()
	s.Given, s.Steps = nil, converge.Lifecycle(widget("a", WidgetSpec{Image: "one", Replicas: 2}), func(w *Widget) {
		w.Spec.Image = "two"
	})
	return s
}

// readyWhen has a deployment for each widget, whose readiness a function determines.
func readyWhen(ready func(w *Widget, d *appsv1.Deployment) bool) func(converge.Env) reconcile.Reconciler {
	return func(env converge.Env) reconcile.Reconciler { return &runReconciler{env.Client, ready} }
}

type runReconciler struct {
	client.Client

	ready func(w *Widget, d *appsv1.Deployment) bool
}

func (r *runReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil || !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	deployment, err := applyDeployment(ctx, r.Client, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	before := w.DeepCopy()
	setReady(w, r.ready(w, deployment), "Rollout", "")
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}
