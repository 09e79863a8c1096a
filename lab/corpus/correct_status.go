// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

var correctStatus = []Entry{
	{
		Name:    "correct-time-of-change",
		About:   "The status contains the time at which a generation was first applied.",
		Source:  "Kubernetes API conventions, Typical status properties. " + apiConventions,
		Correct: with(stampedWorld, func(env converge.Env) reconcile.Reconciler { return &stampingReconciler{env.Client} }),
	},
	{
		Name:   "correct-conditions",
		About:  "Several conditions, with the times of their transitions, from a deployment and a service.",
		Source: "Kubernetes KEP-1623, Standardize Conditions. https://github.com/kubernetes/enhancements/issues/1623",
		Correct: with(conditionsWorld, func(env converge.Env) reconcile.Reconciler {
			return &conditionsReconciler{env.Client}
		}),
	},
	{
		Name:  "correct-waits-for-job",
		About: "Waits for a migration of each image before the deployment gets it.",
		Source: "Helm documentation, Chart Hooks: jobs that have to complete before the rest goes on. " +
			"https://helm.sh/docs/topics/charts_hooks/",
		Correct: with(migrationWorld, func(env converge.Env) reconcile.Reconciler {
			return &migrationReconciler{env.Client}
		}),
	},
	{
		Name: "correct-job-once",
		About: "Runs a job once for each generation, records that, and deletes the job an hour later. A live read " +
			"prevents a second run based on a stale cache.",
		Source: "Kubernetes documentation, Automatic Cleanup for Finished Jobs. " +
			"https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/",
		Correct: with(jobOnceWorld, func(env converge.Env) reconcile.Reconciler { return &jobOnceReconciler{env} }),
	},
	{
		Name:    "correct-aggregated-status",
		About:   "Aggregates the statuses of many deployments in a fixed order.",
		Source:  "Kubernetes API conventions, Typical status properties. " + apiConventions,
		Correct: with(fleetWorld, func(env converge.Env) reconcile.Reconciler { return &fleetReconciler{env.Client} }),
	},
}

type stampingReconciler struct{ client.Client }

func (r *stampingReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := applyConfig(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, err
	}
	if w.Status.ObservedGeneration == w.Generation {
		return reconcile.Result{}, nil
	}
	w.Status.LastSyncTime = new(metav1.Now())
	setReady(w, true, "Applied", "")
	return reconcile.Result{}, r.Status().Update(ctx, w)
}

func stampedWorld() converge.Scenario {
	s := transitionWorld()
	s.Masks = []converge.Mask{{Object: &Widget{}, Field: "status.lastSyncTime"}}
	return s
}

type conditionsReconciler struct{ client.Client }

func (r *conditionsReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	deployment, err := applyDeployment(ctx, r.Client, w)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("deployment: %w", err)
	}
	if err := applyService(ctx, r.Client, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("service: %w", err)
	}
	before := w.DeepCopy()
	done, missing := fullyRolledOut(deployment), w.Spec.Replicas-deployment.Status.AvailableReplicas
	r.set(
		w, "Available", deployment.Status.AvailableReplicas > 0,
		fmt.Sprintf("%d replicas are available", deployment.Status.AvailableReplicas),
	)
	r.set(w, "Progressing", !done, fmt.Sprintf("%d replicas are missing", missing))
	setReady(w, done, "Deployment", fmt.Sprintf("image %s is rolled out: %t", w.Spec.Image, done))
	w.Status.ReadyReplicas = deployment.Status.ReadyReplicas
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}

func (r *conditionsReconciler) set(w *Widget, kind string, status bool, message string) {
	condition := metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: "Deployment", Message: message, ObservedGeneration: w.Generation,
	}
	if status {
		condition.Status = metav1.ConditionTrue
	}
	apimeta.SetStatusCondition(&w.Status.Conditions, condition)
}

func conditionsWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Owns:  everythingOwned(),
		World: []converge.Actor{converge.Deployments(converge.BecomeReady)},
		Steps: converge.Lifecycle(widget("a", WidgetSpec{Image: "v1", Replicas: 2}), withImage("v2"), func(w *Widget) {
			w.Spec.Replicas = 3
		}),
	}
}

type migrationReconciler struct{ client.Client }

func (r *migrationReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := w.DeepCopy()
	if w.Status.Image != w.Spec.Image {
		job := newJob(w, "migrate-"+w.Spec.Image)
		if err := ensure(ctx, r.Client, w, job); err != nil {
			return reconcile.Result{}, fmt.Errorf("migration: %w", err)
		}
		if err := r.Get(ctx, client.ObjectKeyFromObject(job), job); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		if !completed(job) {
			setReady(w, false, "Migrating", "")
			return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
		}
		w.Status.Image = w.Spec.Image
		setReady(w, false, "Migrated", "")
		if err := writeStatus(ctx, r.Client, before, w); err != nil {
			return reconcile.Result{}, err
		}
		before = w.DeepCopy()
	}
	deployment, err := applyDeployment(ctx, r.Client, w)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("deployment: %w", err)
	}
	setReady(w, fullyRolledOut(deployment), "Deployment", "")
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}

func newJob(w *Widget, name string) *batchv1.Job {
	spec := podSpec(w.Spec.Image)
	spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{
		ObjectMeta: childMeta(w, w.Name+"-"+name), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}},
	}
}

func completed(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue
	})
}

func migrationWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Owns:  []client.Object{&batchv1.Job{}, &appsv1.Deployment{}},
		World: []converge.Actor{converge.Jobs(converge.BecomeReady), converge.Deployments(converge.BecomeReady)},
		Steps: converge.Lifecycle(widget("a", WidgetSpec{Image: "v1", Replicas: 2}), withImage("v2")),
	}
}

type jobOnceReconciler struct{ converge.Env }

func (r *jobOnceReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Client.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if w.Status.ObservedGeneration != w.Generation {
		return reconcile.Result{}, r.run(ctx, req)
	}
	var jobs batchv1.JobList
	if err := r.Client.List(ctx, &jobs, ofWidget(w)...); err != nil {
		return reconcile.Result{}, err
	}
	result, current := reconcile.Result{}, newJob(w, fmt.Sprintf("run-%d", w.Generation)).Name
	for _, job := range jobs.Items {
		if !metav1.IsControlledBy(&job, w) || !completed(&job) {
			continue
		}
		if remaining := time.Until(w.Status.LastSyncTime.Add(time.Hour)); remaining > 0 && job.Name == current {
			result.RequeueAfter = remaining + time.Second
			continue
		}
		if err := remove(ctx, r.Client, &job); err != nil {
			return reconcile.Result{}, fmt.Errorf("delete job: %w", err)
		}
	}
	return result, nil
}

// run completes a generation that was not run according to the cache.
func (r *jobOnceReconciler) run(ctx context.Context, req reconcile.Request) error {
	w := &Widget{}
	if err := r.APIReader.Get(ctx, req.NamespacedName, w); err != nil {
		return client.IgnoreNotFound(err)
	}
	if w.Status.ObservedGeneration == w.Generation {
		return nil
	}
	job := newJob(w, fmt.Sprintf("run-%d", w.Generation))
	if err := ensure(ctx, r.Client, w, job); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil || !completed(job) {
		return client.IgnoreNotFound(err)
	}
	w.Status.LastSyncTime, w.Status.Phase = new(metav1.Now()), "Done"
	setReady(w, true, "Done", "")
	return r.Client.Status().Update(ctx, w)
}

func jobOnceWorld() converge.Scenario {
	w := widget("a", WidgetSpec{Image: "v1"})
	return converge.Scenario{
		For:   &Widget{},
		Owns:  []client.Object{&batchv1.Job{}},
		World: []converge.Actor{converge.Jobs(converge.BecomeReady)},
		Masks: []converge.Mask{{Object: &Widget{}, Field: "status.lastSyncTime"}},
		Steps: converge.Steps(
			converge.Apply(w), converge.Sleep(2*time.Hour), converge.Settle(),
			converge.Change(w, withImage("v2")), converge.Sleep(2*time.Hour), converge.Settle(),
			converge.Delete(w), converge.Settle(),
		),
	}
}

// fleetReconciler has a deployment for each tag.
type fleetReconciler struct{ client.Client }

func (r *fleetReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := w.DeepCopy()
	w.Status.Members, w.Status.ReadyReplicas = nil, 0
	for _, tag := range slices.Sorted(slices.Values(w.Spec.Tags)) {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-" + tag}}
		_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
			setSelector(deployment, w)
			deployment.Spec.Replicas = new(w.Spec.Replicas)
			setImage(&deployment.Spec.Template, w.Spec.Image)
			return controllerutil.SetControllerReference(w, deployment, r.Scheme())
		})
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("deployment for %s: %w", tag, err)
		}
		if fullyRolledOut(deployment) {
			w.Status.Members = append(w.Status.Members, tag)
		}
		w.Status.ReadyReplicas += deployment.Status.ReadyReplicas
	}
	done := len(w.Status.Members) == len(w.Spec.Tags)
	setReady(w, done, "Fleet", fmt.Sprintf("%d of %d are rolled out", len(w.Status.Members), len(w.Spec.Tags)))
	return reconcile.Result{}, writeStatus(ctx, r.Client, before, w)
}

func fleetWorld() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Owns:  []client.Object{&appsv1.Deployment{}},
		World: []converge.Actor{converge.Deployments(converge.BecomeReady)},
		Steps: converge.Lifecycle(
			widget("a", WidgetSpec{Image: "v1", Replicas: 1, Tags: []string{"west", "east"}}), withImage("v2"),
		),
	}
}
