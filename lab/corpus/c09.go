// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// C9: a reconciler that triggers itself, or never terminates.
var c09 = []Entry{
	{
		Name: "c09-heartbeat-in-status", Class: "C9",
		About: "The status contains the time of the last reconcile, so each periodic reconcile writes although nothing " +
			"has changed.",
		Source: "Kubernetes KEP-589, Efficient Node Heartbeats: what time stamps in a status cost. " +
			"https://github.com/kubernetes/enhancements/issues/589",
		Buggy: with(heartbeatWorld, func(env converge.Env) reconcile.Reconciler {
			return &heartbeatReconciler{env.Client, true}
		}),
		Correct: with(heartbeatWorld, func(env converge.Env) reconcile.Reconciler {
			return &heartbeatReconciler{env.Client, false}
		}),
	},
	{
		Name: "c09-fights-autoscaler", Class: "C9",
		About: "The number of replicas is reset to the default each time an autoscaler has changed it.",
		Source: "Kubernetes documentation, Horizontal Pod Autoscaling, Migrating Deployments and StatefulSets to " +
			"horizontal autoscaling. " +
			"https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/",
		Buggy: with(autoscaledWorld, func(env converge.Env) reconcile.Reconciler {
			return &autoscaledReconciler{env.Client, true}
		}),
		Correct: with(autoscaledWorld, func(env converge.Env) reconcile.Reconciler {
			return &autoscaledReconciler{env.Client, false}
		}),
	},
	{
		Name: "c09-replaces-rejected-pods", Class: "C9",
		About: "A rejected pod is replaced at once, and so is each replacement, endlessly.",
		Source: "kubernetes/kubernetes#72593: ReplicaSets create pods without an end when they are rejected. " +
			"https://github.com/kubernetes/kubernetes/issues/72593",
		Buggy: with(rejectedWorld, func(env converge.Env) reconcile.Reconciler {
			return &rejectedReconciler{env.Client, 1 << 30}
		}),
		Correct: with(rejectedWorld, func(env converge.Env) reconcile.Reconciler {
			return &rejectedReconciler{env.Client, 3}
		}),
	},
	{
		Name: "c09-version-in-status", Class: "C9",
		About: "The status contains the resourceVersion of the reconciled object, which each write of the status changes.",
		Source: "Kubernetes API conventions, Typical status properties: observedGeneration is of metadata.generation. " +
			"https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md",
		Buggy: with(dataWorld, func(env converge.Env) reconcile.Reconciler {
			return &versionReconciler{env.Client, (*Widget).GetResourceVersion}
		}),
		Correct: with(dataWorld, func(env converge.Env) reconcile.Reconciler {
			return &versionReconciler{env.Client, generationOf}
		}),
	},
	{
		Name: "c09-user-error-retried", Class: "C9",
		About: "A permanent error of the user is retried, and the number of attempts in the status defeats the backoff.",
		Source: "controller-runtime, reconcile.TerminalError, which exists for errors that another attempt cannot help. " +
			"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/reconcile#TerminalError",
		Buggy: with(userErrorWorld, func(env converge.Env) reconcile.Reconciler {
			return &userErrorReconciler{env.Client, true}
		}),
		Correct: with(userErrorWorld, func(env converge.Env) reconcile.Reconciler {
			return &userErrorReconciler{env.Client, false}
		}),
	},
	crossNamespaceOwner,
	polling,
}

type heartbeatReconciler struct {
	client.Client
	always bool
}

func (r *heartbeatReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("apply config: %w", err)
	}
	before := w.DeepCopy()
	setReady(w, true, "Synced", "config is up to date")
	if r.always || !equality.Semantic.DeepEqual(before.Status, w.Status) {
		w.Status.LastSyncTime = new(metav1.Now())
	}
	if err := writeStatus(ctx, r.Client, before, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("write status: %w", err)
	}
	return reconcile.Result{RequeueAfter: time.Minute}, nil
}

func heartbeatWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Owns:  []client.Object{&corev1.ConfigMap{}},
		Steps: changeData(),
		Masks: []converge.Mask{{Object: &Widget{}, Field: "status.lastSyncTime"}},
	}
}

type autoscaledReconciler struct {
	client.Client
	always bool
}

func (r *autoscaledReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		setSelector(deployment, w)
		switch {
		case w.Spec.Scale != nil:
			deployment.Spec.Replicas = new(*w.Spec.Scale)
		case r.always:
			deployment.Spec.Replicas = new(int32(1))
		}
		setImage(&deployment.Spec.Template, w.Spec.Image)
		return controllerutil.SetControllerReference(w, deployment, r.Scheme())
	})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("apply deployment: %w", err)
	}
	return reconcile.Result{}, nil
}

func autoscaledWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Owns:  []client.Object{&appsv1.Deployment{}},
		Steps: converge.Lifecycle(widget("a", WidgetSpec{Image: "v1"}), withImage("v2")),
		World: []converge.Actor{{
			Name: "autoscaler", For: &appsv1.Deployment{},
			Act: func(ctx context.Context, c client.Client, obj client.Object) error {
				deployment := obj.(*appsv1.Deployment)
				if !deployment.DeletionTimestamp.IsZero() || *deployment.Spec.Replicas >= 3 {
					return nil
				}
				deployment.Spec.Replicas = new(int32(3))
				return c.Update(ctx, deployment)
			},
		}},
	}
}

type rejectedReconciler struct {
	client.Client
	limit int
}

func (r *rejectedReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var pods corev1.PodList
	if err := r.List(ctx, &pods, ofWidget(w)...); err != nil {
		return reconcile.Result{}, fmt.Errorf("list pods: %w", err)
	}
	next, running := 0, false
	for _, pod := range pods.Items {
		if !metav1.IsControlledBy(&pod, w) {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimPrefix(pod.Name, w.Name+"-")); err == nil && n >= next {
			next = n + 1
		}
		running = running || pod.Status.Phase != corev1.PodFailed
	}
	before := w.DeepCopy()
	w.Status.Attempts = int32(next)
	switch {
	case running:
		setReady(w, false, "Starting", "")
	case next >= r.limit:
		setReady(w, false, "TooManyFailures", "no more pods are made")
	default:
		pod := &corev1.Pod{
			ObjectMeta: childMeta(w, fmt.Sprintf("%s-%d", w.Name, next)),
			Spec:       podSpec(w.Spec.Image),
		}
		if err := controllerutil.SetControllerReference(w, pod, r.Scheme()); err != nil {
			return reconcile.Result{}, err
		}
		if err := r.Create(ctx, pod); err != nil {
			return reconcile.Result{}, fmt.Errorf("create pod: %w", err)
		}
		setReady(w, false, "Starting", "")
	}
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}

func rejectedWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Owns:  []client.Object{&corev1.Pod{}},
		Given: []client.Object{widget("a", WidgetSpec{Image: "v1"})},
		World: []converge.Actor{{
			Name: "kubelet", For: &corev1.Pod{},
			Act: func(ctx context.Context, c client.Client, obj client.Object) error {
				pod := obj.(*corev1.Pod)
				if pod.Status.Phase == corev1.PodFailed {
					return nil
				}
				pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "SysctlForbidden"
				return c.Status().Update(ctx, pod)
			},
		}},
	}
}

type versionReconciler struct {
	client.Client
	version func(*Widget) string
}

func (r *versionReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	version := r.version(w)
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, err
	}
	before := w.DeepCopy()
	setReady(w, true, "Synced", "applied "+version)
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}

func generationOf(w *Widget) string {
	return fmt.Sprintf("generation %d", w.Generation)
}

var crossNamespaceOwner = Entry{
	Name: "c09-cross-namespace-owner", Class: "C9",
	About: "An object has an owner reference to an object in another namespace. The garbage collector deletes it after " +
		"each creation.",
	Source: "Kubernetes documentation, Owners and Dependents: references across namespaces are disallowed by design. " +
		"https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/",
	Buggy: with(sharedExportWorld, func(env converge.Env) reconcile.Reconciler {
		return &ownedExportReconciler{env.Client}
	}),
	Correct: with(sharedExportWorld, func(env converge.Env) reconcile.Reconciler {
		return &sharedExportReconciler{env.Client}
	}),
}

type userErrorReconciler struct {
	client.Client
	retry bool
}

func (r *userErrorReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := w.DeepCopy()
	timeout, invalid := time.ParseDuration(w.Spec.Timeout)
	if invalid != nil {
		setReady(w, false, "InvalidTimeout", invalid.Error())
		if r.retry {
			w.Status.Attempts++
		}
		if err := writeStatus(ctx, r.Client, before, w); err != nil {
			return reconcile.Result{}, err
		}
		if r.retry {
			return reconcile.Result{}, invalid
		}
		return reconcile.Result{}, nil
	}
	w.Spec.Data = map[string]string{"timeout-seconds": fmt.Sprint(timeout.Seconds())}
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, err
	}
	setReady(w, true, "Applied", "")
	w.Status.Attempts = 0
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}

func userErrorWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Owns:  []client.Object{&corev1.ConfigMap{}},
		Steps: converge.Lifecycle(widget("a", WidgetSpec{Timeout: "5 minutes"}), func(w *Widget) { w.Spec.Timeout = "5m" }),
	}
}

// exportsNamespace is the namespace of all exports.
const exportsNamespace = "exports"

func exported(key types.NamespacedName) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: exportsNamespace, Name: key.Namespace + "." + key.Name},
	}
}

// fillExport sets the content and the origin of an export.
func fillExport(config *corev1.ConfigMap, w *Widget) {
	if config.Labels == nil {
		config.Labels = map[string]string{}
	}
	config.Labels["corpus.trueup.dev/namespace"], config.Labels[widgetLabel] = w.Namespace, w.Name
	config.Data = w.Spec.Data
}

type ownedExportReconciler struct{ client.Client }

func (r *ownedExportReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	config := exported(req.NamespacedName)
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		fillExport(config, w)
		gvk := schema.GroupVersionKind{Group: "corpus.trueup.dev", Version: "v1", Kind: "Widget"}
		config.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w, gvk)}
		return nil
	})
	return reconcile.Result{}, err
}

type sharedExportReconciler struct{ client.Client }

func (r *sharedExportReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	config := exported(req.NamespacedName)
	if !w.DeletionTimestamp.IsZero() {
		if err := client.IgnoreNotFound(r.Delete(ctx, config)); err != nil {
			return reconcile.Result{}, fmt.Errorf("delete export: %w", err)
		}
		if controllerutil.RemoveFinalizer(w, finalizer) {
			return reconcile.Result{}, client.IgnoreNotFound(r.Update(ctx, w))
		}
		return reconcile.Result{}, nil
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		if err := r.Update(ctx, w); err != nil {
			return reconcile.Result{}, fmt.Errorf("add finalizer: %w", err)
		}
	}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		fillExport(config, w)
		return nil
	})
	return reconcile.Result{}, err
}

func sharedExportWorld() converge.Scenario {
	return converge.Scenario{
		For: &Widget{},
		Watches: []converge.Watch{{
			Object: &corev1.ConfigMap{},
			Requests: func(_ context.Context, obj client.Object) []reconcile.Request {
				name, ok := obj.GetLabels()[widgetLabel]
				if !ok {
					return nil
				}
				return []reconcile.Request{
					{NamespacedName: types.NamespacedName{Namespace: obj.GetLabels()["corpus.trueup.dev/namespace"], Name: name}},
				}
			},
		}},
		Given: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: exportsNamespace}}},
		Steps: changeData(),
	}
}

// polling requeues at once, forever.
var polling = Entry{
	Name: "c09-comes-back-at-once", Class: "C9",
	About: "Each reconcile requeues after a millisecond, even when everything is up to date.",
	Source: "controller-runtime, reconcile.Result: RequeueAfter is for who has to look again after some time. " +
		"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/reconcile#Result",
	Buggy: with(dataWorld, func(env converge.Env) reconcile.Reconciler {
		return &pollingReconciler{env.Client, time.Millisecond}
	}),
	Correct: with(dataWorld, func(env converge.Env) reconcile.Reconciler {
		return &pollingReconciler{env.Client, 10 * time.Minute}
	}),
}

type pollingReconciler struct {
	client.Client

	interval time.Duration
}

func (r *pollingReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil || !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.interval}, nil
}
