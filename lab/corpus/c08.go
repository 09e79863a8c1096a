// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// c08 are bugs of reconcilers that write although everything is up to date.
var c08 = []Entry{{
	Name: "c08-endpoints-in-list-order", Class: "C8", Faults: 1,
	About: "Endpoints are written in the order of a list from the cache, which is random.",
	Source: "tailscale#20916, endpoints whose order changes cause more reconciles: " +
		"https://github.com/tailscale/tailscale/issues/20916",
	Buggy: with(backends, func(e converge.Env) reconcile.Reconciler {
		return &endpoints{Client: e.Client, order: func([]discoveryv1.Endpoint) {}}
	}),
	Correct: with(backends, func(e converge.Env) reconcile.Reconciler {
		return &endpoints{Client: e.Client, order: byAddress}
	}),
}, {
	Name: "c08-time-of-last-sync", Class: "C8", Faults: 0,
	About: "Each reconcile writes the current time to a secret, whose event triggers the next reconcile.",
	Source: "cluster-api#6921, messages that differ each time and cause too many reconciles: " +
		"https://github.com/kubernetes-sigs/cluster-api/issues/6921",
	Buggy:   with(mirrors, func(e converge.Env) reconcile.Reconciler { return &clockedMirror{mirror{e.Client}} }),
	Correct: with(mirrors, func(e converge.Env) reconcile.Reconciler { return &changedMirror{mirror{e.Client}} }),
}, {
	Name: "c08-replaced-for-defaults", Class: "C8", Faults: 0,
	About: "A stateful set is replaced whenever it differs from the desired one. It always does, because of server " +
		"defaults.",
	Source: "hypershift#543, a detector of updates that never end, because defaults were compared: " +
		"https://github.com/openshift/hypershift/pull/543",
	Buggy:   with(stores, func(e converge.Env) reconcile.Reconciler { return &comparedStore{store{e.Client}} }),
	Correct: with(stores, func(e converge.Env) reconcile.Reconciler { return &hashedStore{store{e.Client}} }),
}, {
	Name: "c08-appended-once-more", Class: "C8", Faults: 1,
	About: "Arguments that are not in the status are appended. They are appended again if the status could not be " +
		"written.",
	Source: "controller-runtime, controllerutil.CreateOrUpdate, whose function is called for existing objects as well: " +
		"https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/controller/controllerutil#CreateOrUpdate",
	Buggy:   with(features, func(e converge.Env) reconcile.Reconciler { return &appendedArgs{feature{e.Client}} }),
	Correct: with(features, func(e converge.Env) reconcile.Reconciler { return &computedArgs{feature{e.Client}} }),
}}

// backends are pods of users, whose addresses a widget lists.
func backends() converge.Scenario {
	s := converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&discoveryv1.EndpointSlice{}},
		Watches: []converge.Watch{{Object: &corev1.Pod{}, Requests: func(
			_ context.Context, pod client.Object,
		) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: pod.GetNamespace(), Name: "egress"}}}
		}}},
		Given: []client.Object{widget("egress", WidgetSpec{Ref: "proxy"})},
	}
	for i := range 4 {
		pod := &corev1.Pod{ObjectMeta: meta(fmt.Sprintf("proxy-%d", i)), Spec: podSpec("proxy:1")}
		pod.Labels = map[string]string{"app": "proxy"}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.0.0.%d", 10+i)}
		s.Given = append(s.Given, pod)
	}
	return s
}

// endpoints has an endpoint slice with the addresses of pods.
type endpoints struct {
	client.Client
	order func([]discoveryv1.Endpoint)
}

func byAddress(endpoints []discoveryv1.Endpoint) {
	slices.SortFunc(endpoints, func(a, b discoveryv1.Endpoint) int { return cmp.Compare(a.Addresses[0], b.Addresses[0]) })
}

func (r *endpoints) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	pods := &corev1.PodList{}
	if err := r.List(ctx, pods, client.InNamespace(w.Namespace), client.MatchingLabels{"app": w.Spec.Ref}); err != nil {
		return reconcile.Result{}, err
	}
	var wanted []discoveryv1.Endpoint
	for _, pod := range pods.Items {
		if pod.Status.PodIP != "" {
			wanted = append(wanted, discoveryv1.Endpoint{Addresses: []string{pod.Status.PodIP}})
		}
	}
	r.order(wanted)
	slice := &discoveryv1.EndpointSlice{ObjectMeta: childMeta(w, w.Name)}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, slice, func() error {
		metav1.SetMetaDataLabel(&slice.ObjectMeta, widgetLabel, w.Name)
		slice.AddressType = discoveryv1.AddressTypeIPv4
		slice.Endpoints = wanted
		return controllerutil.SetControllerReference(w, slice, r.Scheme())
	}); err != nil {
		return reconcile.Result{}, fmt.Errorf("writing endpoints: %w", err)
	}
	return reconcile.Result{}, nil
}

// mirrors are widgets whose data is copied to a secret.
func mirrors() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&corev1.Secret{}},
		Given: []client.Object{widget("mirror", WidgetSpec{Data: map[string]string{"a": "1", "b": "2"}})},
		Masks: []converge.Mask{{Object: &corev1.Secret{}, Field: "metadata.annotations[" + syncedAt + "]"}},
	}
}

// syncedAt is the annotation with the time of a copy.
const syncedAt = "corpus.trueup.dev/synced-at"

// mirror copies the data of a widget.
type mirror struct{ client.Client }

// sync makes a copy. It calls stamp with the secret, and whether its data has changed.
func (r *mirror) sync(
	ctx context.Context, key client.ObjectKey, stamp func(secret *corev1.Secret, changed bool),
) error {
	w := &Widget{}
	if err := r.Get(ctx, key, w); err != nil {
		return client.IgnoreNotFound(err)
	}
	data := map[string][]byte{}
	for key, value := range w.Spec.Data {
		data[key] = []byte(value)
	}
	secret := &corev1.Secret{ObjectMeta: childMeta(w, w.Name)}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, secret, func() error {
		metav1.SetMetaDataLabel(&secret.ObjectMeta, widgetLabel, w.Name)
		stamp(secret, !equality.Semantic.DeepEqual(secret.Data, data))
		secret.Data = data
		return controllerutil.SetControllerReference(w, secret, r.Scheme())
	})
	return err
}

type clockedMirror struct{ mirror }

func (r *clockedMirror) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.sync(ctx, req.NamespacedName, func(secret *corev1.Secret, _ bool) {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, syncedAt, time.Now().Format(time.RFC3339Nano))
	})
}

type changedMirror struct{ mirror }

func (r *changedMirror) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.sync(ctx, req.NamespacedName, func(secret *corev1.Secret, changed bool) {
		if changed || secret.Annotations[syncedAt] == "" {
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, syncedAt, time.Now().Format(time.RFC3339Nano))
		}
	})
}

// stores are widgets whose stateful set cannot be changed, only replaced.
func stores() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&appsv1.StatefulSet{}},
		Steps: converge.Lifecycle(widget("redis", WidgetSpec{Replicas: 1, Image: "redis:7", Storage: "1Gi"}),
			func(w *Widget) { w.Spec.Storage = "2Gi" }),
		World: []converge.Actor{converge.StatefulSets(converge.BecomeReady)},
	}
}

// hashAnnotation is on objects that are replaced when their specification changes. It has the hash of the desired
// specification.
const hashAnnotation = "corpus.trueup.dev/spec-hash"

// store has a stateful set for a widget.
type store struct{ client.Client }

func (r *store) desired(w *Widget) (*appsv1.StatefulSet, error) {
	size, err := resource.ParseQuantity(w.Spec.Storage)
	if err != nil {
		return nil, reconcile.TerminalError(err)
	}
	labels := map[string]string{widgetLabel: w.Name}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
	set := &appsv1.StatefulSet{ObjectMeta: childMeta(w, w.Name), Spec: appsv1.StatefulSetSpec{
		Replicas:    &w.Spec.Replicas,
		ServiceName: w.Name,
		Selector:    &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(w.Spec.Image),
		},
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim},
	}}
	spec, err := json.Marshal(set.Spec)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(spec)
	set.Annotations = map[string]string{hashAnnotation: hex.EncodeToString(sum[:8])}
	return set, controllerutil.SetControllerReference(w, set, r.Scheme())
}

// replace is common to both versions, except for how a difference is detected.
func (r *store) replace(
	ctx context.Context, req reconcile.Request, same func(current, desired *appsv1.StatefulSet) bool,
) error {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return client.IgnoreNotFound(err)
	}
	desired, err := r.desired(w)
	if err != nil {
		return err
	}
	current := &appsv1.StatefulSet{}
	err = r.Get(ctx, req.NamespacedName, current)
	if apierrs.IsNotFound(err) {
		return r.Create(ctx, desired)
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(current, w) {
		return fmt.Errorf("stateful set %s has another owner", current.Name)
	}
	if same(current, desired) {
		return nil
	}
	if err := r.Delete(ctx, current, client.Preconditions{UID: &current.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the outdated stateful set: %w", err)
	}
	return r.Create(ctx, desired)
}

type comparedStore struct{ store }

func (r *comparedStore) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.replace(ctx, req, func(current, desired *appsv1.StatefulSet) bool {
		return equality.Semantic.DeepEqual(current.Spec, desired.Spec)
	})
}

type hashedStore struct{ store }

func (r *hashedStore) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.replace(ctx, req, func(current, desired *appsv1.StatefulSet) bool {
		return current.Annotations[hashAnnotation] == desired.Annotations[hashAnnotation]
	})
}

// features are widgets whose arguments grow.
func features() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&appsv1.Deployment{}},
		Steps: converge.Lifecycle(widget("gateway", WidgetSpec{Replicas: 1, Image: "gateway:1", Tags: []string{"http2"}}),
			func(w *Widget) { w.Spec.Tags = []string{"http2", "quic"} }),
		World: []converge.Actor{converge.Deployments(converge.BecomeReady)},
	}
}

// feature has a deployment with an argument for each tag of a widget.
type feature struct{ client.Client }

// reconcile is common to both versions, except for the arguments.
func (r *feature) reconcile(
	ctx context.Context, req reconcile.Request, args func(w *Widget, current []string) []string,
) error {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return client.IgnoreNotFound(err)
	}
	d := &appsv1.Deployment{ObjectMeta: childMeta(w, w.Name)}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, d, func() error {
		if d.CreationTimestamp.IsZero() {
			labels := map[string]string{widgetLabel: w.Name}
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			d.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(w.Spec.Image)}
		} else if !metav1.IsControlledBy(d, w) {
			return fmt.Errorf("%s has another owner", d.Name)
		}
		d.Spec.Replicas = &w.Spec.Replicas
		container := &d.Spec.Template.Spec.Containers[0]
		container.Image = w.Spec.Image
		container.Args = args(w, container.Args)
		return controllerutil.SetControllerReference(w, d, r.Scheme())
	})
	if err != nil {
		return fmt.Errorf("the deployment: %w", err)
	}
	if slices.Equal(w.Status.Members, w.Spec.Tags) && w.Status.ObservedGeneration == w.Generation {
		return nil
	}
	w.Status.Members, w.Status.ObservedGeneration = w.Spec.Tags, w.Generation
	return r.Status().Update(ctx, w)
}

type appendedArgs struct{ feature }

func (r *appendedArgs) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.reconcile(ctx, req, func(w *Widget, args []string) []string {
		for _, tag := range w.Spec.Tags {
			if !slices.Contains(w.Status.Members, tag) {
				args = append(args, "--enable", tag)
			}
		}
		return args
	})
}

type computedArgs struct{ feature }

func (r *computedArgs) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.reconcile(ctx, req, func(w *Widget, _ []string) []string {
		var args []string
		for _, tag := range w.Spec.Tags {
			args = append(args, "--enable", tag)
		}
		return args
	})
}
