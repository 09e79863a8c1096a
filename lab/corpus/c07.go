// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// c07 are bugs of requests that time out and have an effect nevertheless.
var c07 = []Entry{{
	Name: "c07-instance-without-token", Class: "C7", Faults: 1,
	About: "An instance is requested twice because the response to the first request was lost.",
	Source: "Amazon EC2, ensuring idempotency in API requests: " +
		"https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html",
	Buggy:   with(instances, func(e converge.Env) reconcile.Reconciler { return &unnamedInstance{instance{e}} }),
	Correct: with(instances, func(e converge.Env) reconcile.Reconciler { return &namedInstance{instance{e}} }),
}, {
	Name: "c07-quota-added-twice", Class: "C7", Faults: 1,
	About: "The demand of a widget is added to a sum, and added again when the request seems to have failed.",
	Source: "Kubernetes API conventions, on writing a client so that repeated requests do no harm: " +
		"https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#http-status-codes",
	Buggy:   with(quotas, func(e converge.Env) reconcile.Reconciler { return &summedQuota{quota{e}} }),
	Correct: with(quotas, func(e converge.Env) reconcile.Reconciler { return &itemisedQuota{quota{e}} }),
}, {
	Name: "c07-timeout-taken-for-success", Class: "C7", Faults: 1,
	About: "The controller waits until a creation that timed out shows up in the cache. If the object was not created, " +
		"no retry follows.",
	Source: "kubernetes#67662, expectations of replica sets after a creation that timed out: " +
		"https://github.com/kubernetes/kubernetes/issues/67662",
	Buggy:   with(sites, func(e converge.Env) reconcile.Reconciler { return &expectingSite{e.Client} }),
	Correct: with(sites, func(e converge.Env) reconcile.Reconciler { return &retryingSite{e.Client} }),
}, {
	Name: "c07-token-not-saved", Class: "C7", Faults: 2,
	About: "The token of a request is kept in memory if it cannot be saved. After a crash, a second request has " +
		"another token.",
	Source: "crossplane-runtime, the managed reconciler, which saves that a creation is pending before it begins: " +
		"https://github.com/crossplane/crossplane-runtime/blob/main/pkg/reconciler/managed/reconciler.go",
	Buggy: with(tokens, func(e converge.Env) reconcile.Reconciler {
		return &bestEffortToken{token{e, map[string]string{}}}
	}),
	Correct: with(tokens, func(e converge.Env) reconcile.Reconciler { return &savedToken{token{e, map[string]string{}}} }),
}, {
	Name: "c07-rolled-back-success", Class: "C7", Faults: 1,
	About:   "A switch that seems to have failed is undone permanently: its target is deleted.",
	Source:  "Google API Improvement Proposal 155, on requests whose outcome is not known: https://google.aip.dev/155",
	Buggy:   with(switches, func(e converge.Env) reconcile.Reconciler { return &undoneSwitch{trafficSwitch{e.Client}} }),
	Correct: with(switches, func(e converge.Env) reconcile.Reconciler { return &repeatedSwitch{trafficSwitch{e.Client}} }),
}}

// instances are buckets with an external object that costs money.
func instances() converge.Scenario {
	return converge.Scenario{
		For:   &Bucket{},
		Given: []client.Object{bucket("gpu", BucketSpec{Region: "eu"}), bucket("cpu", BucketSpec{Region: "us"})},
	}
}

// instance has an instance for each bucket.
type instance struct{ converge.Env }

// begin returns a bucket that has a finalizer, or nil if nothing more is to do.
func (r *instance) begin(
	ctx context.Context, req reconcile.Request, names func(context.Context, *Bucket) ([]string, error),
) (*Bucket, error) {
	b := &Bucket{}
	if err := r.Client.Get(ctx, req.NamespacedName, b); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if b.DeletionTimestamp.IsZero() {
		if controllerutil.AddFinalizer(b, finalizer) {
			return b, r.Client.Update(ctx, b)
		}
		return b, nil
	}
	if !controllerutil.ContainsFinalizer(b, finalizer) {
		return nil, nil
	}
	all, err := names(ctx, b)
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		if err := deleteCloud(ctx, r.Cloud, name); err != nil {
			return nil, fmt.Errorf("deleting %s: %w", name, err)
		}
	}
	controllerutil.RemoveFinalizer(b, finalizer)
	return nil, client.IgnoreNotFound(r.Client.Update(ctx, b))
}

// running records the created instance.
func (r *instance) running(ctx context.Context, b *Bucket, id string) error {
	if b.Status.ID == id && b.Status.ObservedGeneration == b.Generation {
		return nil
	}
	b.Status.ID, b.Status.Phase, b.Status.ObservedGeneration = id, "Running", b.Generation
	return r.Client.Status().Update(ctx, b)
}

type unnamedInstance struct{ instance }

func (r *unnamedInstance) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b, err := r.begin(ctx, req, func(ctx context.Context, b *Bucket) ([]string, error) {
		return r.Cloud.List(ctx, "instance-"+b.Name+"-")
	})
	if b == nil || err != nil {
		return reconcile.Result{}, err
	}
	id := b.Status.ID
	if id == "" {
		if id, err = r.Cloud.CreateNamed(ctx, "instance-"+b.Name+"-", b.Spec.Region); err != nil {
			return reconcile.Result{}, fmt.Errorf("requesting an instance: %w", err)
		}
	}
	return reconcile.Result{}, r.running(ctx, b, id)
}

type namedInstance struct{ instance }

func (r *namedInstance) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b, err := r.begin(ctx, req, func(_ context.Context, b *Bucket) ([]string, error) {
		return []string{"instance-" + b.Name}, nil
	})
	if b == nil || err != nil {
		return reconcile.Result{}, err
	}
	id := "instance-" + b.Name
	if err := r.Cloud.Create(ctx, id, b.Spec.Region); err != nil && !errors.Is(err, converge.ErrExists) {
		return reconcile.Result{}, fmt.Errorf("requesting an instance: %w", err)
	}
	return reconcile.Result{}, r.running(ctx, b, id)
}

// quotas are widgets that reserve parts of a shared quota.
func quotas() converge.Scenario {
	return converge.Scenario{
		For:   &Widget{},
		Given: []client.Object{widget("small", WidgetSpec{Replicas: 1}), widget("large", WidgetSpec{Replicas: 5})},
	}
}

// quota reserves the replicas of a widget.
type quota struct{ converge.Env }

// reconcile is common to both versions, except for reservation and release.
func (r *quota) reconcile(
	ctx context.Context, req reconcile.Request, reserve, release func(context.Context, *Widget) error,
) error {
	w := &Widget{}
	if err := r.Client.Get(ctx, req.NamespacedName, w); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		if !controllerutil.ContainsFinalizer(w, finalizer) {
			return nil
		}
		if err := release(ctx, w); err != nil {
			return fmt.Errorf("releasing %d: %w", w.Spec.Replicas, err)
		}
		controllerutil.RemoveFinalizer(w, finalizer)
		return client.IgnoreNotFound(r.Client.Update(ctx, w))
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		if err := r.Client.Update(ctx, w); err != nil {
			return err
		}
	}
	if w.Status.Number == w.Spec.Replicas {
		return nil
	}
	if err := reserve(ctx, w); err != nil {
		return fmt.Errorf("reserving %d: %w", w.Spec.Replicas, err)
	}
	w.Status.Number, w.Status.ObservedGeneration = w.Spec.Replicas, w.Generation
	return r.Client.Status().Update(ctx, w)
}

type summedQuota struct{ quota }

func (r *summedQuota) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.reconcile(ctx, req,
		func(ctx context.Context, w *Widget) error { return r.add(ctx, int(w.Spec.Replicas)) },
		func(ctx context.Context, w *Widget) error { return r.add(ctx, -int(w.Status.Number)) })
}

// add adds to the reserved sum, and deletes an empty sum.
func (r *summedQuota) add(ctx context.Context, n int) error {
	value, err := r.Cloud.Get(ctx, "quota/used")
	if errors.Is(err, converge.ErrAbsent) {
		value, err = "0", nil
	}
	if err != nil {
		return err
	}
	sum, err := strconv.Atoi(value)
	if err != nil {
		return err
	}
	if sum+n == 0 {
		return deleteCloud(ctx, r.Cloud, "quota/used")
	}
	return r.Cloud.Put(ctx, "quota/used", strconv.Itoa(sum+n))
}

type itemisedQuota struct{ quota }

func (r *itemisedQuota) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.reconcile(ctx, req,
		func(ctx context.Context, w *Widget) error {
			return r.Cloud.Put(ctx, "quota/used/"+w.Name, strconv.Itoa(int(w.Spec.Replicas)))
		},
		func(ctx context.Context, w *Widget) error { return deleteCloud(ctx, r.Cloud, "quota/used/"+w.Name) })
}

// sites are widgets that need a service.
func sites() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.Service{}},
		Given: []client.Object{widget("docs", WidgetSpec{Host: "docs.example.com"})},
	}
}

// service creates the service of a widget.
func service(w *Widget, c client.Client) (*corev1.Service, error) {
	svc := &corev1.Service{ObjectMeta: childMeta(w, w.Name), Spec: corev1.ServiceSpec{
		Selector: map[string]string{widgetLabel: w.Name},
		Ports:    []corev1.ServicePort{{Name: "http", Port: 80}},
	}}
	return svc, controllerutil.SetControllerReference(w, svc, c.Scheme())
}

type expectingSite struct{ client.Client }

func (r *expectingSite) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := r.Get(ctx, req.NamespacedName, &corev1.Service{})
	if !apierrs.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	svc, err := service(w, r)
	if err != nil {
		return reconcile.Result{}, err
	}
	err = r.Create(ctx, svc)
	if apierrs.IsTimeout(err) || apierrs.IsServerTimeout(err) || errors.Is(err, context.DeadlineExceeded) {
		log.FromContext(ctx).Info("The service was created, but is not visible yet.")
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, err
}

type retryingSite struct{ client.Client }

func (r *retryingSite) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	existing := &corev1.Service{}
	err := r.Get(ctx, req.NamespacedName, existing)
	if err == nil && !metav1.IsControlledBy(existing, w) {
		return reconcile.Result{}, fmt.Errorf("service %s has another owner", existing.Name)
	}
	if !apierrs.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	svc, err := service(w, r)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.Create(ctx, svc)
}

// tokens are buckets in a system whose requests have idempotency tokens.
func tokens() converge.Scenario {
	return converge.Scenario{
		For: &Bucket{}, Given: []client.Object{bucket("backups", BucketSpec{Region: "ap"})}, Desired: oneEach,
	}
}

// oneEach returns an error unless each bucket has exactly one external object.
func oneEach(s converge.State) error {
	buckets := &BucketList{}
	if err := s.List(buckets); err != nil {
		return err
	}
	if there, wanted := len(s.Cloud()), len(buckets.Items); there != wanted {
		return fmt.Errorf("%d external objects for %d buckets", there, wanted)
	}
	for _, b := range buckets.Items {
		if b.Status.Phase != "Running" {
			return fmt.Errorf("%s is not running", b.Name)
		}
	}
	return nil
}

// tokenAnnotation has the token of the request that creates the external object of a bucket.
const tokenAnnotation = "corpus.trueup.dev/request-token"

// token creates external objects with a token that is new for each bucket and each process.
type token struct {
	converge.Env
	tokens map[string]string // by UID
}

// reconcile is common to both versions, except for how the token is saved.
func (r *token) reconcile(ctx context.Context, req reconcile.Request, save func(context.Context, *Bucket) error) error {
	b := &Bucket{}
	if err := r.Client.Get(ctx, req.NamespacedName, b); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !b.DeletionTimestamp.IsZero() {
		return r.cleanUp(ctx, b)
	}
	if controllerutil.AddFinalizer(b, finalizer) {
		if err := r.Client.Update(ctx, b); err != nil {
			return err
		}
	}
	id := cmp.Or(b.Annotations[tokenAnnotation], r.tokens[string(b.UID)])
	if id == "" {
		names, err := r.Cloud.List(ctx, "request/")
		if err != nil {
			return err
		}
		id = b.Name + "-" + strconv.Itoa(len(names))
		r.tokens[string(b.UID)] = id
	}
	if b.Annotations[tokenAnnotation] == "" {
		metav1.SetMetaDataAnnotation(&b.ObjectMeta, tokenAnnotation, id)
		if err := save(ctx, b); err != nil {
			return err
		}
	}
	if err := r.Cloud.Put(ctx, "request/"+id, b.Spec.Region); err != nil {
		return fmt.Errorf("request %s: %w", id, err)
	}
	if b.Status.ID == id && b.Status.ObservedGeneration == b.Generation {
		return nil
	}
	b.Status.ID, b.Status.Phase, b.Status.ObservedGeneration = id, "Running", b.Generation
	return r.Client.Status().Update(ctx, b)
}

func (r *token) cleanUp(ctx context.Context, b *Bucket) error {
	if !controllerutil.ContainsFinalizer(b, finalizer) {
		return nil
	}
	if id := cmp.Or(b.Annotations[tokenAnnotation], r.tokens[string(b.UID)]); id != "" {
		if err := deleteCloud(ctx, r.Cloud, "request/"+id); err != nil {
			return err
		}
	}
	controllerutil.RemoveFinalizer(b, finalizer)
	return client.IgnoreNotFound(r.Client.Update(ctx, b))
}

type bestEffortToken struct{ token }

func (r *bestEffortToken) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.reconcile(ctx, req, func(ctx context.Context, b *Bucket) error {
		if err := r.Client.Update(ctx, b); err != nil {
			log.FromContext(ctx).Error(err, "Cannot save the token, which is still in memory.")
			delete(b.Annotations, tokenAnnotation)
		}
		return nil
	})
}

type savedToken struct{ token }

func (r *savedToken) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.reconcile(ctx, req, func(ctx context.Context, b *Bucket) error {
		return r.Client.Update(ctx, b)
	})
}

// switches are widgets whose traffic goes to a deployment of their image.
func switches() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&appsv1.Deployment{}, &corev1.Service{}},
		Steps: converge.Lifecycle(widget("cart", WidgetSpec{Image: "cart:1", Host: "blue", Replicas: 1}), func(w *Widget) {
			w.Spec.Image, w.Spec.Host = "cart:2", "green"
		}),
		World: []converge.Actor{converge.Deployments(converge.BecomeReady)},
	}
}

// trafficSwitch has a deployment for each color, and a service for the desired one.
type trafficSwitch struct{ client.Client }

func (r *trafficSwitch) labels(w *Widget) map[string]string {
	return map[string]string{widgetLabel: w.Name, "color": w.Spec.Host}
}

func (r *trafficSwitch) deployment(w *Widget) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: childMeta(w, w.Name+"-"+w.Spec.Host)}
}

func (r *trafficSwitch) deploy(ctx context.Context, w *Widget) error {
	d := r.deployment(w)
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, d, func() error {
		if d.CreationTimestamp.IsZero() {
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: r.labels(w)}
			d.Spec.Template = corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: r.labels(w)}, Spec: podSpec(w.Spec.Image),
			}
		} else if !metav1.IsControlledBy(d, w) {
			return fmt.Errorf("deployment %s has another owner", d.Name)
		}
		d.Spec.Replicas = &w.Spec.Replicas
		d.Spec.Template.Spec.Containers[0].Image = w.Spec.Image
		return controllerutil.SetControllerReference(w, d, r.Scheme())
	})
	return err
}

func (r *trafficSwitch) route(ctx context.Context, w *Widget) error {
	svc := &corev1.Service{ObjectMeta: childMeta(w, w.Name)}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, svc, func() error {
		metav1.SetMetaDataLabel(&svc.ObjectMeta, widgetLabel, w.Name)
		svc.Spec.Selector = r.labels(w)
		if len(svc.Spec.Ports) == 0 {
			svc.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
		}
		return controllerutil.SetControllerReference(w, svc, r.Scheme())
	})
	return err
}

// retire deletes the deployments without traffic.
func (r *trafficSwitch) retire(ctx context.Context, w *Widget) error {
	all := &appsv1.DeploymentList{}
	if err := r.List(ctx, all, ofWidget(w)...); err != nil {
		return err
	}
	for i := range all.Items {
		old := &all.Items[i]
		if old.Name == r.deployment(w).Name || !metav1.IsControlledBy(old, w) {
			continue
		}
		if err := r.Delete(ctx, old, client.Preconditions{UID: &old.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("retiring %s: %w", old.Name, err)
		}
	}
	return nil
}

func (r *trafficSwitch) phase(ctx context.Context, w *Widget, phase string) error {
	if w.Status.Phase == phase && w.Status.ObservedGeneration == w.Generation {
		return nil
	}
	w.Status.Phase, w.Status.ObservedGeneration = phase, w.Generation
	return r.Status().Update(ctx, w)
}

type undoneSwitch struct{ trafficSwitch }

func (r *undoneSwitch) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() || w.Status.Phase == "RolledBack" && w.Status.ObservedGeneration == w.Generation {
		return reconcile.Result{}, nil
	}
	if err := r.deploy(ctx, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("deploying %s: %w", w.Spec.Image, err)
	}
	if err := r.route(ctx, w); err != nil {
		if undo := r.Delete(ctx, r.deployment(w)); client.IgnoreNotFound(undo) != nil {
			return reconcile.Result{}, fmt.Errorf("rolling back after %w: %w", err, undo)
		}
		return reconcile.Result{}, r.phase(ctx, w, "RolledBack")
	}
	if err := r.retire(ctx, w); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.phase(ctx, w, "Live")
}

type repeatedSwitch struct{ trafficSwitch }

func (r *repeatedSwitch) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	if err := r.deploy(ctx, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("deploying %s: %w", w.Spec.Image, err)
	}
	if err := r.route(ctx, w); err != nil {
		return reconcile.Result{}, fmt.Errorf("switching to %s: %w", w.Spec.Host, err)
	}
	if err := r.retire(ctx, w); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.phase(ctx, w, "Live")
}
