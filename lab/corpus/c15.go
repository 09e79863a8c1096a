// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// C15: orders, shared objects of the cache, and unexpected shapes.
var c15 = []Entry{
	{
		Name: "c15-members-in-list-order", Class: "C15", Faults: 1,
		About: "The status lists the members in the order of a list from the cache, which is random.",
		Source: "client-go, threadSafeMap.List: what a cache lists comes from a map, in no order. " +
			"https://github.com/kubernetes/client-go/blob/master/tools/cache/thread_safe_store.go",
		Buggy:   with(clusterWorld, cluster(membersAsListed)),
		Correct: with(clusterWorld, cluster(membersSorted)),
	},
	{
		Name: "c15-first-is-leader", Class: "C15", Faults: 1,
		About: "The first pod of the list becomes the leader. In another order, another pod does.",
		Source: "kubernetes/kubernetes#40415: of several replica sets that fit, the oldest is taken, and not any. " +
			"https://github.com/kubernetes/kubernetes/issues/40415",
		Buggy:   with(clusterWorld, cluster(leaderIsFirst)),
		Correct: with(clusterWorld, cluster(leaderIsLowest)),
	},
	{
		Name: "c15-surplus-by-position", Class: "C15", Faults: 1,
		About: "All pods after the first n of the list are surplus. In another order, other pods are deleted and must be " +
			"created again.",
		Source: "Kubernetes documentation, StatefulSet, Deployment and Scaling Guarantees: pods go in reverse order of " +
			"their numbers. " +
			"https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#deployment-and-scaling-guarantees",
		Buggy:   with(shrinkingWorld, cluster(surplusByPosition)),
		Correct: with(shrinkingWorld, cluster(surplusByNumber)),
	},
	{
		Name: "c15-cached-object-changed", Class: "C15",
		About: "A list without copies is changed in place. If the write fails, the change seems to be done.",
		Source: "kubernetes/sample-controller: objects from the store are never to be modified. " +
			"https://github.com/kubernetes/sample-controller/blob/master/controller.go",
		Buggy:   with(movingWorld, cluster(annotateShared)),
		Correct: with(movingWorld, cluster(annotateCopies)),
	},
	{
		Name: "c15-number-is-count", Class: "C15", Faults: 1,
		About: "The number of the next pod is the number of pods. After one in the middle is deleted, that name is always " +
			"in use.",
		Source: "Kubernetes documentation, StatefulSet, Ordinal Index: each pod has a number of its own, and a missing one " +
			"is made again. " +
			"https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#ordinal-index",
		Buggy:   with(clusterWorld, func(env converge.Env) reconcile.Reconciler { return &countingReconciler{env.Client} }),
		Correct: with(clusterWorld, cluster(nothingElse)),
	},
	{
		Name: "c15-no-container-status-yet", Class: "C15",
		About: "The first container status of a pod is read before the kubelet has reported any, and the reconciler panics.",
		Source: "Kubernetes API conventions, Optional vs. Required: optional fields may be absent, " +
			"and clients have to cope. " +
			"https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#optional-vs-required",
		Buggy:   with(kubeletWorld, cluster(restartsOfFirst)),
		Correct: with(kubeletWorld, cluster(restartsOfAll)),
	},
	sharedField,
}

// clusterReconciler has a pod for each number below the desired replicas, and processes the existing pods.
type clusterReconciler struct {
	client.Client
	each func(ctx context.Context, c client.Client, w *Widget) error
}

func cluster(each func(ctx context.Context, c client.Client, w *Widget) error) func(converge.Env) reconcile.Reconciler {
	return func(env converge.Env) reconcile.Reconciler { return &clusterReconciler{env.Client, each} }
}

func (r *clusterReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	for i := range w.Spec.Replicas {
		if err := ensure(ctx, r.Client, w, newMember(w, i)); err != nil {
			return reconcile.Result{}, fmt.Errorf("pod %d: %w", i, err)
		}
	}
	return reconcile.Result{}, r.each(ctx, r.Client, w)
}

// members lists the pods that a widget controls.
func members(ctx context.Context, c client.Client, w *Widget, options ...client.ListOption) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, append(ofWidget(w), options...)...); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !metav1.IsControlledBy(&pod, w) }), nil
}

func byName(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) }

func nothingElse(context.Context, client.Client, *Widget) error { return nil }

func membersAsListed(ctx context.Context, c client.Client, w *Widget) error {
	pods, err := members(ctx, c, w)
	if err != nil {
		return err
	}
	return writeMembers(ctx, c, w, pods)
}

func membersSorted(ctx context.Context, c client.Client, w *Widget) error {
	pods, err := members(ctx, c, w)
	if err != nil {
		return err
	}
	slices.SortFunc(pods, byName)
	return writeMembers(ctx, c, w, pods)
}

func writeMembers(ctx context.Context, c client.Client, w *Widget, pods []corev1.Pod) error {
	before := w.DeepCopy()
	w.Status.Members = nil
	for _, pod := range pods {
		w.Status.Members = append(w.Status.Members, pod.Name)
	}
	return writeStatus(ctx, c, before, w)
}

func leaderIsFirst(ctx context.Context, c client.Client, w *Widget) error {
	pods, err := members(ctx, c, w)
	if err != nil || len(pods) == 0 {
		return err
	}
	return lead(ctx, c, pods[0].Name, pods)
}

func leaderIsLowest(ctx context.Context, c client.Client, w *Widget) error {
	pods, err := members(ctx, c, w)
	if err != nil || len(pods) == 0 {
		return err
	}
	return lead(ctx, c, slices.MinFunc(pods, byName).Name, pods)
}

// lead sets the label of the leader on one pod.
func lead(ctx context.Context, c client.Client, leader string, pods []corev1.Pod) error {
	const role = "corpus.trueup.dev/role"
	for _, pod := range pods {
		before := pod.DeepCopy()
		if delete(pod.Labels, role); pod.Name == leader {
			pod.Labels[role] = "leader"
		}
		if equality.Semantic.DeepEqual(before, &pod) {
			continue
		}
		if err := c.Patch(ctx, &pod, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("label pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

func surplusByPosition(ctx context.Context, c client.Client, w *Widget) error {
	pods, err := members(ctx, c, w)
	if err != nil {
		return err
	}
	for i, pod := range pods {
		if i < int(w.Spec.Replicas) {
			continue
		}
		if err := remove(ctx, c, &pod); err != nil {
			return fmt.Errorf("delete pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

func surplusByNumber(ctx context.Context, c client.Client, w *Widget) error {
	pods, err := members(ctx, c, w)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if ordinal(pod.Name) < w.Spec.Replicas {
			continue
		}
		if err := remove(ctx, c, &pod); err != nil {
			return fmt.Errorf("delete pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

func annotateShared(ctx context.Context, c client.Client, w *Widget) error {
	pods, err := members(ctx, c, w, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	return annotate(ctx, c, w, pods)
}

func annotateCopies(ctx context.Context, c client.Client, w *Widget) error {
	pods, err := members(ctx, c, w, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	for i := range pods {
		pods[i] = *pods[i].DeepCopy()
	}
	return annotate(ctx, c, w, pods)
}

func annotate(ctx context.Context, c client.Client, w *Widget, pods []corev1.Pod) error {
	for _, pod := range pods {
		if pod.Annotations[hostAnnotation] == w.Spec.Host {
			continue
		}
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, hostAnnotation, w.Spec.Host)
		if err := c.Update(ctx, &pod); err != nil {
			return fmt.Errorf("annotate pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// countingReconciler is clusterReconciler with a simpler algorithm.
type countingReconciler struct{ client.Client }

func (r *countingReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	pods, err := members(ctx, r.Client, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	for i := int32(len(pods)); i < w.Spec.Replicas; i++ {
		pod := newMember(w, i)
		if err := controllerutil.SetControllerReference(w, pod, r.Scheme()); err != nil {
			return reconcile.Result{}, err
		}
		if err := r.Create(ctx, pod); err != nil {
			return reconcile.Result{}, fmt.Errorf("pod %d: %w", i, err)
		}
	}
	return reconcile.Result{}, nil
}

func restartsOfFirst(ctx context.Context, c client.Client, w *Widget) error {
	pods, err := members(ctx, c, w)
	if err != nil {
		return err
	}
	before := w.DeepCopy()
	w.Status.Failures = 0
	for _, pod := range pods {
		w.Status.Failures += pod.Status.ContainerStatuses[0].RestartCount
	}
	return writeStatus(ctx, c, before, w)
}

func restartsOfAll(ctx context.Context, c client.Client, w *Widget) error {
	pods, err := members(ctx, c, w)
	if err != nil {
		return err
	}
	before := w.DeepCopy()
	w.Status.Failures = 0
	for _, pod := range pods {
		for _, container := range pod.Status.ContainerStatuses {
			w.Status.Failures += container.RestartCount
		}
	}
	return writeStatus(ctx, c, before, w)
}

func clusterWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Owns:  []client.Object{&corev1.Pod{}},
		Given: []client.Object{widget("a", WidgetSpec{Image: "v1", Replicas: 3})},
	}
}

func shrinkingWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Owns:  []client.Object{&corev1.Pod{}},
		Steps: converge.Lifecycle(widget("a", WidgetSpec{Image: "v1", Replicas: 3}), func(w *Widget) { w.Spec.Replicas = 1 }),
	}
}

func movingWorld() converge.Scenario {
	return converge.Scenario{
		For:  &Widget{},
		Owns: []client.Object{&corev1.Pod{}},
		Steps: converge.Lifecycle(
			widget("a", WidgetSpec{Image: "v1", Replicas: 2, Host: "blue.example.com"}),
			func(w *Widget) { w.Spec.Host = "green.example.com" },
		),
	}
}

// kubeletWorld restarts each pod's container once.
func kubeletWorld() converge.Scenario {
	s := clusterWorld()
	s.World = []converge.Actor{{
		Name: "kubelet", For: &corev1.Pod{},
		Act: func(ctx context.Context, c client.Client, obj client.Object) error {
			pod := obj.(*corev1.Pod)
			if len(pod.Status.ContainerStatuses) > 0 || !pod.DeletionTimestamp.IsZero() {
				return nil
			}
			pod.Status.Phase = corev1.PodRunning
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: "main", Image: pod.Spec.Containers[0].Image, Ready: true, RestartCount: 1},
			}
			return c.Status().Update(ctx, pod)
		},
	}}
	return s
}

// sharedField stores the current object in a field that all workers share.
var sharedField = Entry{
	Name: "c15-object-in-a-field", Class: "C15", Faults: 1,
	About: "The object of the reconcile is stored in a field of the reconciler, which all workers share: one worker " +
		"creates the child of another one's object.",
	Source: "controller-runtime, controller.Options.MaxConcurrentReconciles: Reconcile is called by several workers at " +
		"once, for different objects. " +
		"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/controller#TypedOptions",
	Buggy:   withSetup(twoOfThem, twoWorkers(func(r *seedReconciler, _ *Widget) *Widget { return r.widget })),
	Correct: withSetup(twoOfThem, twoWorkers(func(_ *seedReconciler, w *Widget) *Widget { return w })),
}

// twoOfThem are two widgets that are created at the same time.
func twoOfThem() converge.Scenario {
	left, right := widget("left", WidgetSpec{Data: map[string]string{"seed": "1"}}), widget("right", WidgetSpec{
		Data: map[string]string{"seed": "2"},
	})
	return converge.Scenario{
		For: &Widget{},
		Steps: converge.Steps(
			converge.Apply(left), converge.Apply(right), converge.Settle(), converge.Delete(left), converge.Delete(right),
			converge.Settle(),
		),
	}
}

func twoWorkers(of func(r *seedReconciler, w *Widget) *Widget) func(manager.Manager) error {
	return func(mgr manager.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&corev1.ConfigMap{}).WithOptions(controller.Options{
			MaxConcurrentReconciles: 2,
		}).
			Complete(&seedReconciler{Client: mgr.GetClient(), of: of})
	}
}

// seedReconciler records the data of a widget once, and never changes it.
type seedReconciler struct {
	client.Client

	of func(r *seedReconciler, w *Widget) *Widget
	// widget is the one that any worker read last.
	widget *Widget
}

func (r *seedReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil || !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r.widget = w
	err := r.Get(ctx, req.NamespacedName, &corev1.ConfigMap{})
	if !apierrs.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	seed := &corev1.ConfigMap{ObjectMeta: childMeta(w, w.Name), Data: r.of(r, w).Spec.Data}
	if err := controllerutil.SetControllerReference(w, seed, r.Scheme()); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.Create(ctx, seed)
}
