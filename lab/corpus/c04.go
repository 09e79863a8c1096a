// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// c04 are bugs of transitions that are handled only when the controller observes them.
var c04 = []Entry{{
	Name: "c04-volume-of-deleted-pod", Class: "C4", Faults: 1,
	About: "The volume of a pod is deleted when the controller sees the deletion of the pod. It stays if the event is " +
		"missed or forgotten.",
	Source: "cassandra-operator#398, persistent volume claims left behind, found by Sieve (OSDI'22, unobserved states): " +
		"https://github.com/instaclustr/cassandra-operator/issues/398",
	Buggy: withSetup(scaledSets, watchPods),
	Correct: withSetup(scaledSets, func(mgr manager.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).
			Owns(&corev1.Pod{}).
			Owns(&corev1.PersistentVolumeClaim{}).
			Complete(&comparedPods{statefulPods{mgr.GetClient()}})
	}),
}, {
	Name: "c04-failure-by-transition", Class: "C4", Faults: 1,
	About: "Only a job that changes from running to failed triggers a reconcile, not one that has failed when it is " +
		"first seen.",
	Source: "Kubernetes, writing controllers, level driven and not edge driven: " +
		"https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/controllers.md",
	Buggy: withSetup(failingJobs, func(mgr manager.Manager) error {
		return watchJobs(mgr, builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false },
			UpdateFunc: func(e event.UpdateEvent) bool {
				return e.ObjectOld.(*batchv1.Job).Status.Failed == 0 && e.ObjectNew.(*batchv1.Job).Status.Failed > 0
			},
		}))
	}),
	Correct: withSetup(failingJobs, func(mgr manager.Manager) error { return watchJobs(mgr) }),
}, {
	Name: "c04-cleanup-on-delete-event", Class: "C4", Faults: 1,
	About: "An object in another namespace is deleted when the controller sees the deletion of its owner. It stays if " +
		"the controller is down then.",
	Source: "kubernetes#6877, endpoints left behind by services that were deleted while the controller was down: " +
		"https://github.com/kubernetes/kubernetes/issues/6877",
	Buggy: withSetup(exports, func(mgr manager.Manager) error {
		return watchExports(mgr, &eventExport{export{mgr.GetClient()}})
	}),
	Correct: withSetup(exports, func(mgr manager.Manager) error {
		return watchExports(mgr, &finalizedExport{export{mgr.GetClient()}})
	}),
}, {
	Name: "c04-swept-only-once", Class: "C4", Faults: 2,
	About: "Objects whose owners were deleted while the controller was down are deleted only once, at its start. They " +
		"stay if that fails.",
	Source: "kubernetes, endpoints_controller.go, checkLeftoverEndpoints, which puts into the queue what it finds: " +
		"https://github.com/kubernetes/kubernetes/blob/master/pkg/controller/endpoint/endpoints_controller.go",
	Buggy: withSetup(survivors, func(mgr manager.Manager) error {
		return watchExports(mgr, &sweptExport{eventExport: eventExport{export{mgr.GetClient()}}})
	}),
	Correct: withSetup(survivors, func(mgr manager.Manager) error {
		return watchExports(mgr, &finalizedExport{export{mgr.GetClient()}})
	}),
}, {
	Name: "c04-rotation-in-memory", Class: "C4", Faults: 1,
	About: "A change of a secret is detected by comparison with the memory of the process, which is empty after a " +
		"restart.",
	Source: "Helm, automatically roll deployments, on checksums in annotations instead: " +
		"https://helm.sh/docs/howto/charts_tips_and_tricks/#automatically-roll-deployments",
	Buggy: with(rotations, func(e converge.Env) reconcile.Reconciler {
		return &rememberedSum{rotation{e.Client}, map[string]string{}}
	}),
	Correct: with(rotations, func(e converge.Env) reconcile.Reconciler { return &writtenSum{rotation{e.Client}} }),
}}

// scaledSets are widgets with pods and volumes, which are scaled down.
func scaledSets() converge.Scenario {
	return converge.Scenario{
		For: &Widget{},
		Steps: converge.Lifecycle(widget("ring", WidgetSpec{Replicas: 3, Image: "ring:1"}), func(w *Widget) {
			w.Spec.Replicas = 1
		}),
	}
}

// statefulPods has a pod and a volume for each replica.
type statefulPods struct{ client.Client }

// ensure creates the pod of an ordinal, and its volume.
func (r *statefulPods) ensure(ctx context.Context, w *Widget, ordinal int32) error {
	name := fmt.Sprintf("%s-%d", w.Name, ordinal)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: childMeta(w, "data-"+name)}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	pod := &corev1.Pod{ObjectMeta: childMeta(w, name), Spec: podSpec(w.Spec.Image)}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
	}}}
	for _, obj := range []client.Object{claim, pod} {
		err := r.Get(ctx, client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object))
		if err == nil {
			continue
		}
		if !apierrs.IsNotFound(err) {
			return err
		}
		if err := controllerutil.SetControllerReference(w, obj, r.Scheme()); err != nil {
			return err
		}
		if err := r.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %s: %w", obj.GetName(), err)
		}
	}
	return nil
}

// surplus reports whether a name ends with the ordinal of a superfluous replica.
func surplus(w *Widget, name string) bool {
	ordinal, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	return err == nil && ordinal >= int(w.Spec.Replicas)
}

// scale creates missing pods, and deletes superfluous ones.
func (r *statefulPods) scale(ctx context.Context, w *Widget) error {
	for i := range w.Spec.Replicas {
		if err := r.ensure(ctx, w, i); err != nil {
			return err
		}
	}
	return r.removeSurplus(ctx, w, &corev1.PodList{})
}

func (r *statefulPods) removeSurplus(ctx context.Context, w *Widget, list client.ObjectList) error {
	if err := r.List(ctx, list, ofWidget(w)...); err != nil {
		return err
	}
	return eachObject(list, func(obj client.Object) error {
		if !surplus(w, obj.GetName()) || !obj.GetDeletionTimestamp().IsZero() || !metav1.IsControlledBy(obj, w) {
			return nil
		}
		if err := r.Delete(ctx, obj, client.Preconditions{UID: new(obj.GetUID())}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s: %w", obj.GetName(), err)
		}
		return nil
	})
}

// watchPods deletes the volumes of pods whose deletion it observes.
func watchPods(mgr manager.Manager) error {
	r := &watchedPods{statefulPods: statefulPods{mgr.GetClient()}, deleted: map[client.ObjectKey]bool{}}
	return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).
		Owns(&corev1.Pod{}).
		Owns(&corev1.PersistentVolumeClaim{}).
		Watches(&corev1.Pod{}, handler.Funcs{
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				r.deleted[client.ObjectKeyFromObject(e.Object)] = true // its owner is reconciled because of Owns
			},
		}).
		Complete(r)
}

type watchedPods struct {
	statefulPods
	deleted map[client.ObjectKey]bool // pods whose volumes were not checked yet
}

func (r *watchedPods) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.scale(ctx, w); err != nil {
		return reconcile.Result{}, err
	}
	for pod := range r.deleted {
		if surplus(w, pod.Name) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: childMeta(w, "data-"+pod.Name)}
			if err := r.Delete(ctx, claim); client.IgnoreNotFound(err) != nil {
				return reconcile.Result{}, fmt.Errorf("deleting volume %s: %w", claim.Name, err)
			}
		}
		delete(r.deleted, pod)
	}
	return reconcile.Result{}, nil
}

type comparedPods struct{ statefulPods }

func (r *comparedPods) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.scale(ctx, w); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.removeSurplus(ctx, w, &corev1.PersistentVolumeClaimList{})
}

// failingJobs are widgets whose job fails.
func failingJobs() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Given: []client.Object{widget("import", WidgetSpec{Image: "import:1"})},
		World: []converge.Actor{converge.Jobs(converge.Fail)},
	}
}

// watchJobs registers a controller that runs jobs.
func watchJobs(mgr manager.Manager, options ...builder.OwnsOption) error {
	return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&batchv1.Job{}, options...).
		Complete(&importer{mgr.GetClient()})
}

// importer reports the result of a job in the status.
type importer struct{ client.Client }

func (r *importer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if w.Status.Phase == "Failed" || w.Status.Phase == "Imported" {
		return reconcile.Result{}, nil
	}
	job := &batchv1.Job{ObjectMeta: childMeta(w, w.Name+"-run")}
	err := r.Get(ctx, client.ObjectKeyFromObject(job), job)
	if apierrs.IsNotFound(err) {
		job.Spec.BackoffLimit = new(int32(0))
		job.Spec.Template.Spec = podSpec(w.Spec.Image)
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		if err := controllerutil.SetControllerReference(w, job, r.Scheme()); err != nil {
			return reconcile.Result{}, err
		}
		err = r.Create(ctx, job)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("job of widget %s: %w", w.Name, err)
	}
	if !metav1.IsControlledBy(job, w) {
		return reconcile.Result{}, fmt.Errorf("job %s has another owner", job.Name)
	}
	switch {
	case job.Status.Failed > 0:
		w.Status.Phase = "Failed"
	case job.Status.Succeeded > 0:
		w.Status.Phase = "Imported"
	default:
		return reconcile.Result{}, nil
	}
	w.Status.ObservedGeneration = w.Generation
	return reconcile.Result{}, r.Status().Update(ctx, w)
}

// exportNamespace is the namespace of the copies. Widgets cannot own objects there.
const exportNamespace = "exports"

// exports are widgets whose data is copied to another namespace.
func exports() converge.Scenario {
	return converge.Scenario{
		For: &Widget{},
		Given: []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: exportNamespace}},
			widget("prices", WidgetSpec{Data: map[string]string{"apple": "3", "pear": "5"}}),
		},
	}
}

// watchExports registers a controller that copies the data of widgets. It also reconciles when a copy changes or is
// deleted.
func watchExports(mgr manager.Manager, r reconcile.Reconciler) error {
	widgetOf := func(_ context.Context, obj client.Object) []reconcile.Request {
		if obj.GetNamespace() != exportNamespace || obj.GetLabels()[widgetLabel] == "" {
			return nil
		}
		return []reconcile.Request{
			{NamespacedName: client.ObjectKey{Namespace: namespace, Name: obj.GetLabels()[widgetLabel]}},
		}
	}
	changes := predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }}
	return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(widgetOf), builder.WithPredicates(changes)).
		Complete(r)
}

// export copies the data of a widget.
type export struct{ client.Client }

func (r *export) copy(key client.ObjectKey) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: exportNamespace, Name: key.Name, Labels: map[string]string{widgetLabel: key.Name},
	}}
}

func (r *export) publish(ctx context.Context, w *Widget) error {
	cm := r.copy(client.ObjectKeyFromObject(w))
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, cm, func() error {
		metav1.SetMetaDataLabel(&cm.ObjectMeta, widgetLabel, w.Name)
		cm.Data = w.Spec.Data
		return nil
	})
	return err
}

func (r *export) remove(ctx context.Context, key client.ObjectKey) error {
	return client.IgnoreNotFound(r.Delete(ctx, r.copy(key)))
}

type eventExport struct{ export }

func (r *eventExport) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	err := r.Get(ctx, req.NamespacedName, w)
	if apierrs.IsNotFound(err) {
		return reconcile.Result{}, r.remove(ctx, req.NamespacedName)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.publish(ctx, w)
}

type finalizedExport struct{ export }

func (r *finalizedExport) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		if !controllerutil.ContainsFinalizer(w, finalizer) {
			return reconcile.Result{}, nil
		}
		if err := r.remove(ctx, req.NamespacedName); err != nil {
			return reconcile.Result{}, err
		}
		controllerutil.RemoveFinalizer(w, finalizer)
		return reconcile.Result{}, client.IgnoreNotFound(r.Update(ctx, w))
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		if err := r.Update(ctx, w); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, r.publish(ctx, w)
}

// rotations are widgets that must restart when the secret they refer to changes.
func rotations() converge.Scenario {
	secret := &corev1.Secret{ObjectMeta: meta("token"), Data: map[string][]byte{"token": []byte("first")}}
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&appsv1.Deployment{}},
		Watches: []converge.Watch{{Object: &corev1.Secret{}, Requests: func(
			_ context.Context, obj client.Object,
		) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: "api"}}}
		}}},
		Given: []client.Object{secret, widget("api", WidgetSpec{Image: "api:1", Replicas: 1, Ref: "token"})},
		Steps: converge.Steps(converge.Settle(),
			converge.Change(secret, func(s *corev1.Secret) {
				s.Data = map[string][]byte{"token": []byte("second")}
			}), converge.Settle(),
			converge.Delete(widget("api", WidgetSpec{})), converge.Settle()),
		World: []converge.Actor{converge.Deployments(converge.BecomeReady)},
	}
}

// sumAnnotation is on the template of a deployment. A change of it restarts the pods.
const sumAnnotation = "corpus.trueup.dev/secret-sum"

// rotation runs a deployment that reads a secret when it starts.
type rotation struct{ client.Client }

// sum returns a checksum of the secret of a widget.
func (r *rotation) sum(ctx context.Context, w *Widget) (string, error) {
	secret := &corev1.Secret{}
	if err := r.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Spec.Ref}, secret); err != nil {
		return "", fmt.Errorf("the secret: %w", err)
	}
	sum := sha256.Sum256(secret.Data["token"])
	return hex.EncodeToString(sum[:8]), nil
}

// ensure creates or updates a deployment with a checksum. An empty checksum keeps the checksum of the deployment.
func (r *rotation) ensure(ctx context.Context, w *Widget, sum string) error {
	d := &appsv1.Deployment{ObjectMeta: childMeta(w, w.Name)}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, d, func() error {
		labels := map[string]string{widgetLabel: w.Name}
		d.Spec.Replicas = &w.Spec.Replicas
		if d.CreationTimestamp.IsZero() {
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			d.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(w.Spec.Image)}
		} else if !metav1.IsControlledBy(d, w) {
			return fmt.Errorf("it has another owner")
		}
		d.Spec.Template.Spec.Containers[0].Image = w.Spec.Image
		if sum != "" {
			metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, sumAnnotation, sum)
		}
		return controllerutil.SetControllerReference(w, d, r.Scheme())
	})
	return err
}

type rememberedSum struct {
	rotation
	sums map[string]string
}

func (r *rememberedSum) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	sum, err := r.sum(ctx, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	restart := ""
	if last, seen := r.sums[req.String()]; seen && last != sum {
		restart = sum
	}
	if err := r.ensure(ctx, w, restart); err != nil {
		return reconcile.Result{}, fmt.Errorf("the deployment: %w", err)
	}
	r.sums[req.String()] = sum
	return reconcile.Result{}, nil
}

type writtenSum struct{ rotation }

func (r *writtenSum) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	sum, err := r.sum(ctx, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.ensure(ctx, w, sum); err != nil {
		return reconcile.Result{}, fmt.Errorf("the deployment: %w", err)
	}
	return reconcile.Result{}, nil
}

// survivors are widgets with exports; one of them is deleted.
func survivors() converge.Scenario {
	s := exports()
	s.Given = append(s.Given, widget("weights", WidgetSpec{Data: map[string]string{"apple": "120"}}))
	s.Steps = converge.Steps(converge.Settle(), converge.Delete(widget("prices", WidgetSpec{})), converge.Settle())
	return s
}

// sweptExport checks once for copies whose widgets were deleted while no controller was running.
type sweptExport struct {
	eventExport
	swept bool
}

func (r *sweptExport) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if !r.swept {
		r.swept = true
		if err := r.sweep(ctx); err != nil {
			log.FromContext(ctx).Error(err, "Cannot sweep.")
		}
	}
	return r.eventExport.Reconcile(ctx, req)
}

func (r *sweptExport) sweep(ctx context.Context) error {
	copies := &corev1.ConfigMapList{}
	if err := r.List(ctx, copies, client.InNamespace(exportNamespace), client.HasLabels{widgetLabel}); err != nil {
		return err
	}
	for _, cm := range copies.Items {
		key := client.ObjectKey{Namespace: namespace, Name: cm.Labels[widgetLabel]}
		err := r.Get(ctx, key, &Widget{})
		if apierrs.IsNotFound(err) {
			err = r.remove(ctx, key)
		}
		if err != nil {
			return fmt.Errorf("the copy of %s: %w", key, err)
		}
	}
	return nil
}
