// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// c02 are bugs of stale reads that cause an object to be created twice.
var c02 = []Entry{{
	Name: "c02-list-then-generate", Class: "C2", Faults: 1,
	About: "Pods with generated names are counted in a cache that does not have the pods just created.",
	Source: "cluster-api#12957, which has the MachineSet controller wait for its cache after it created machines: " +
		"https://github.com/kubernetes-sigs/cluster-api/pull/12957",
	Buggy:   with(replicas, func(e converge.Env) reconcile.Reconciler { return &countedPods{podSet{e.Client}} }),
	Correct: with(replicas, func(e converge.Env) reconcile.Reconciler { return &numberedPods{podSet{e.Client}} }),
}, {
	Name: "c02-revision-by-search", Class: "C2", Faults: 1,
	About: "The replica set of a template is looked up in the cache, and created with a generated name if the cache " +
		"does not have it.",
	Source: "kubernetes#40415, deployments with more than one new replica set of the same template: " +
		"https://github.com/kubernetes/kubernetes/issues/40415",
	Buggy:   with(rollouts, func(e converge.Env) reconcile.Reconciler { return &searchedRevision{e.Client} }),
	Correct: with(rollouts, func(e converge.Env) reconcile.Reconciler { return &hashedRevision{e.Client} }),
}, {
	Name: "c02-run-remembered-in-status", Class: "C2", Faults: 1,
	About: "The controller reads from a possibly stale status whether a run was started, and the job of the run has a " +
		"generated name.",
	Source: "kubernetes, cronjob_controllerv2.go, getJobName, whose names keep a run from being started twice: " +
		"https://github.com/kubernetes/kubernetes/blob/master/pkg/controller/cronjob/cronjob_controllerv2.go",
	Buggy:   with(runs, func(e converge.Env) reconcile.Reconciler { return &rememberedRun{runner{e.Client}} }),
	Correct: with(runs, func(e converge.Env) reconcile.Reconciler { return &namedRun{runner{e.Client}} }),
}, {
	Name: "c02-port-freed-on-error", Class: "C2", Faults: 2,
	About: "A port is reserved in memory until the cache shows it as allocated, but released when the allocating " +
		"request times out.",
	Source: "controller-runtime FAQ, on caches that might be stale and keeping track of one's actions: " +
		"https://github.com/kubernetes-sigs/controller-runtime/blob/main/FAQ.md",
	Buggy: with(ports, func(e converge.Env) reconcile.Reconciler {
		return &reservedPort{Client: e.Client, taken: map[int32]string{}}
	}),
	Correct: with(ports, func(e converge.Env) reconcile.Reconciler {
		return &claimedPort{Client: e.Client, live: e.APIReader}
	}),
}}

// replicas are widgets with some pods, whose number changes.
func replicas() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.Pod{}},
		Steps: converge.Lifecycle(widget("web", WidgetSpec{Replicas: 2, Image: "web:1"}),
			func(w *Widget) { w.Spec.Replicas = 3 },
			func(w *Widget) { w.Spec.Replicas = 1 }),
	}
}

// podSet has a pod for each replica.
type podSet struct{ client.Client }

func (r *podSet) list(ctx context.Context, w *Widget) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := r.List(ctx, pods, ofWidget(w)...); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	var own []corev1.Pod
	for _, pod := range pods.Items {
		if metav1.IsControlledBy(&pod, w) {
			own = append(own, pod)
		}
	}
	return own, nil
}

func (r *podSet) create(ctx context.Context, w *Widget, pod *corev1.Pod) error {
	pod.Spec = podSpec(w.Spec.Image)
	if err := controllerutil.SetControllerReference(w, pod, r.Scheme()); err != nil {
		return err
	}
	return r.Create(ctx, pod)
}

type countedPods struct{ podSet }

func (r *countedPods) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	pods, err := r.list(ctx, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	for range int(w.Spec.Replicas) - len(pods) {
		pod := &corev1.Pod{ObjectMeta: childMeta(w, "")}
		pod.GenerateName = w.Name + "-"
		if err := r.create(ctx, w, pod); err != nil {
			return reconcile.Result{}, fmt.Errorf("creating a pod: %w", err)
		}
	}
	for i := int(w.Spec.Replicas); i < len(pods); i++ {
		if err := r.Delete(ctx, &pods[i]); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("deleting pod %s: %w", pods[i].Name, err)
		}
	}
	return reconcile.Result{}, nil
}

type numberedPods struct{ podSet }

func (r *numberedPods) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	pods, err := r.list(ctx, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	missing := map[int32]bool{}
	for i := range w.Spec.Replicas {
		missing[i] = true
	}
	for i := range pods {
		ordinal, err := strconv.Atoi(strings.TrimPrefix(pods[i].Name, w.Name+"-"))
		if err == nil && missing[int32(ordinal)] {
			delete(missing, int32(ordinal))
			continue
		}
		if err := r.Delete(ctx, &pods[i], client.Preconditions{UID: &pods[i].UID}); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("deleting pod %s: %w", pods[i].Name, err)
		}
	}
	for i := range w.Spec.Replicas {
		if !missing[i] {
			continue
		}
		if err := r.create(ctx, w, &corev1.Pod{ObjectMeta: childMeta(w, fmt.Sprintf("%s-%d", w.Name, i))}); err != nil {
			return reconcile.Result{}, fmt.Errorf("creating pod %d: %w", i, err)
		}
	}
	return reconcile.Result{}, nil
}

// rollouts are widgets whose image changes and changes back.
func rollouts() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&appsv1.ReplicaSet{}},
		Steps: converge.Lifecycle(widget("shop", WidgetSpec{Replicas: 1, Image: "shop:1"}),
			func(w *Widget) { w.Spec.Image = "shop:2" },
			func(w *Widget) { w.Spec.Image = "shop:1" }),
	}
}

// replicaSet returns the replica set of the image of a widget.
func replicaSet(w *Widget, name string, c client.Client) (*appsv1.ReplicaSet, error) {
	labels := map[string]string{widgetLabel: w.Name, "image": strings.ReplaceAll(w.Spec.Image, ":", "-")}
	rs := &appsv1.ReplicaSet{
		ObjectMeta: childMeta(w, name),
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(w.Spec.Replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(w.Spec.Image)},
		},
	}
	return rs, controllerutil.SetControllerReference(w, rs, c.Scheme())
}

// rolledOut records the image in the status.
func rolledOut(ctx context.Context, c client.Client, w *Widget) error {
	if w.Status.Image == w.Spec.Image && w.Status.ObservedGeneration == w.Generation {
		return nil
	}
	w.Status.Image, w.Status.ObservedGeneration = w.Spec.Image, w.Generation
	return c.Status().Update(ctx, w)
}

// sameTemplate ignores server defaults.
func sameTemplate(a, b *appsv1.ReplicaSet) bool {
	return equality.Semantic.DeepEqual(a.Spec.Template.Labels, b.Spec.Template.Labels)
}

type searchedRevision struct{ client.Client }

func (r *searchedRevision) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	desired, err := replicaSet(w, "", r)
	if err != nil {
		return reconcile.Result{}, err
	}
	sets := &appsv1.ReplicaSetList{}
	if err := r.List(ctx, sets, ofWidget(w)...); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing replica sets: %w", err)
	}
	if !slices.ContainsFunc(sets.Items, func(rs appsv1.ReplicaSet) bool { return sameTemplate(&rs, desired) }) {
		desired.GenerateName = w.Name + "-"
		if err := r.Create(ctx, desired); err != nil {
			return reconcile.Result{}, fmt.Errorf("creating a replica set: %w", err)
		}
	}
	for i := range sets.Items {
		old := &sets.Items[i]
		if sameTemplate(old, desired) {
			continue
		}
		if err := r.Delete(ctx, old); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("deleting replica set %s: %w", old.Name, err)
		}
	}
	return reconcile.Result{}, rolledOut(ctx, r, w)
}

type hashedRevision struct{ client.Client }

func (r *hashedRevision) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	desired, err := replicaSet(w, w.Name+"-"+strings.ReplaceAll(w.Spec.Image, ":", "-"), r)
	if err != nil {
		return reconcile.Result{}, err
	}
	current := &appsv1.ReplicaSet{}
	err = r.Get(ctx, client.ObjectKeyFromObject(desired), current)
	if apierrs.IsNotFound(err) {
		err = r.Create(ctx, desired)
		current = desired
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("replica set %s: %w", desired.Name, err)
	}
	if !metav1.IsControlledBy(current, w) {
		return reconcile.Result{}, fmt.Errorf("replica set %s has another owner", current.Name)
	}
	sets := &appsv1.ReplicaSetList{}
	if err := r.List(ctx, sets, ofWidget(w)...); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing replica sets: %w", err)
	}
	for i := range sets.Items {
		old := &sets.Items[i]
		if old.Name == current.Name || !metav1.IsControlledBy(old, w) {
			continue
		}
		if err := r.Delete(ctx, old, client.Preconditions{UID: &old.UID}); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("deleting replica set %s: %w", old.Name, err)
		}
	}
	return reconcile.Result{}, rolledOut(ctx, r, w)
}

// runs are widgets that request a run by a tag.
func runs() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&batchv1.Job{}},
		Steps: converge.Lifecycle(widget("report", WidgetSpec{Ref: "monday", Image: "report:1"}), func(w *Widget) {
			w.Spec.Ref = "tuesday"
		}),
		World: []converge.Actor{converge.Jobs(converge.BecomeReady)},
	}
}

// runner runs jobs.
type runner struct{ client.Client }

func (r *runner) start(ctx context.Context, w *Widget, meta metav1.ObjectMeta) error {
	spec := podSpec(w.Spec.Image)
	spec.RestartPolicy = corev1.RestartPolicyOnFailure
	job := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}
	if err := controllerutil.SetControllerReference(w, job, r.Scheme()); err != nil {
		return err
	}
	return r.Create(ctx, job)
}

// started records that the requested run was started.
func (r *runner) started(ctx context.Context, w *Widget) error {
	w.Status.ID, w.Status.ObservedGeneration = w.Spec.Ref, w.Generation
	return r.Status().Update(ctx, w)
}

type rememberedRun struct{ runner }

func (r *rememberedRun) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() || w.Status.ID == w.Spec.Ref {
		return reconcile.Result{}, nil
	}
	meta := childMeta(w, "")
	meta.GenerateName = w.Name + "-" + w.Spec.Ref + "-"
	if err := r.start(ctx, w, meta); err != nil {
		return reconcile.Result{}, fmt.Errorf("starting run %s: %w", w.Spec.Ref, err)
	}
	return reconcile.Result{}, r.started(ctx, w)
}

type namedRun struct{ runner }

func (r *namedRun) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	job := &batchv1.Job{ObjectMeta: childMeta(w, w.Name+"-"+w.Spec.Ref)}
	err := r.Get(ctx, client.ObjectKeyFromObject(job), job)
	switch {
	case apierrs.IsNotFound(err):
		err = r.start(ctx, w, job.ObjectMeta)
	case err == nil && !metav1.IsControlledBy(job, w):
		err = fmt.Errorf("job %s has another owner", job.Name)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("run %s: %w", w.Spec.Ref, err)
	}
	if w.Status.ID == w.Spec.Ref && w.Status.ObservedGeneration == w.Generation {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.started(ctx, w)
}

// firstPort is the first of the ports that widgets get.
const firstPort = 9000

// ports are widgets that each need a unique port.
func ports() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.ConfigMap{}},
		Given:   []client.Object{widget("a", WidgetSpec{}), widget("b", WidgetSpec{}), widget("c", WidgetSpec{})},
		Desired: portsDiffer,
	}
}

// portsDiffer returns an error unless each widget has a port that no other widget has.
func portsDiffer(s converge.State) error {
	widgets := &WidgetList{}
	if err := s.List(widgets); err != nil {
		return err
	}
	owners := map[int32]string{}
	for _, w := range widgets.Items {
		if w.Status.Number == 0 {
			return fmt.Errorf("%s has no port", w.Name)
		}
		if other := owners[w.Status.Number]; other != "" {
			return fmt.Errorf("%s and %s have port %d", other, w.Name, w.Status.Number)
		}
		owners[w.Status.Number] = w.Name
	}
	return nil
}

type reservedPort struct {
	client.Client
	taken map[int32]string // owners of ports that are not allocated in the cache yet
}

func (r *reservedPort) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if w.Status.Number != 0 || !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	all := &WidgetList{}
	if err := r.List(ctx, all, client.InNamespace(w.Namespace)); err != nil {
		return reconcile.Result{}, err
	}
	for _, other := range all.Items {
		if other.Status.Number != 0 {
			r.taken[other.Status.Number] = other.Name
		}
	}
	port := int32(firstPort)
	for r.taken[port] != "" {
		port++
	}
	r.taken[port] = w.Name
	w.Status.Number = port
	if err := r.Status().Update(ctx, w); err != nil {
		delete(r.taken, port)
		return reconcile.Result{}, fmt.Errorf("taking port %d: %w", port, err)
	}
	return reconcile.Result{}, nil
}

type claimedPort struct {
	client.Client
	live client.Reader
}

func (r *claimedPort) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	port := w.Status.Number
	if port == 0 {
		port = firstPort
	}
	for ; ; port++ {
		ours, err := r.claim(ctx, w, port)
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("claiming port %d: %w", port, err)
		}
		if ours {
			break
		}
	}
	if w.Status.Number == port {
		return reconcile.Result{}, r.release(ctx, w)
	}
	w.Status.Number = port
	return reconcile.Result{}, r.Status().Update(ctx, w)
}

// release releases the claims of the widget that it does not use.
func (r *claimedPort) release(ctx context.Context, w *Widget) error {
	claims := &corev1.ConfigMapList{}
	if err := r.List(ctx, claims, ofWidget(w)...); err != nil {
		return err
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Name == fmt.Sprintf("port-%d", w.Status.Number) || !metav1.IsControlledBy(claim, w) {
			continue
		}
		if err := r.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("releasing %s: %w", claim.Name, err)
		}
	}
	return nil
}

// claim reports whether the port belongs to the widget now. Only one object with the name of the port can exist.
func (r *claimedPort) claim(ctx context.Context, w *Widget, port int32) (bool, error) {
	claim := &corev1.ConfigMap{ObjectMeta: childMeta(w, fmt.Sprintf("port-%d", port))}
	if err := r.Get(ctx, client.ObjectKeyFromObject(claim), claim); err == nil && metav1.IsControlledBy(claim, w) {
		return true, nil
	}
	claim = &corev1.ConfigMap{ObjectMeta: childMeta(w, claim.Name)}
	if err := controllerutil.SetControllerReference(w, claim, r.Scheme()); err != nil {
		return false, err
	}
	err := r.Create(ctx, claim)
	if !apierrs.IsAlreadyExists(err) {
		return err == nil, err
	}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		return false, err
	}
	return metav1.IsControlledBy(claim, w), nil
}
