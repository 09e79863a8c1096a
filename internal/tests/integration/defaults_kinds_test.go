// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
)

// manageNew creates an object. It returns the writes of a manager that has not seen the object before, and then the
// writes after a change by hand.
func manageNew[T client.Object](
	e *env, desired T, merge func(current, desired T), drift func(T),
) (writes int, afterDrift int) {
	e.Helper()
	counting := &updateCounter{Client: e.Client}
	disco := discovery.NewDiscoveryClientForConfigOrDie(e.RESTConfig())
	config := reconcilers.Config{Client: counting, APIReader: e.Client, Recorder: &record.FakeRecorder{}, Discovery: disco}
	ctx := reconcilers.StashOriginalConfig(reconcilers.StashConfig(e.Context(), config), config)
	parent := newResource("parent", nil)
	parent.Namespace = e.Namespace
	manager := func() *reconcilers.UpdatingObjectManager[T] {
		return &reconcilers.UpdatingObjectManager[T]{MergeBeforeUpdate: merge}
	}
	actual := desired.DeepCopyObject().(T)
	if namespaced, err := e.IsObjectNamespaced(actual); err != nil {
		e.Fatal(err)
	} else if namespaced {
		desired.SetNamespace(e.Namespace)
		actual.SetNamespace(e.Namespace)
	}
	e.Must(e.Create(e.Context(), actual))
	e.Cleanup(func() { _ = e.Delete(context.Background(), actual) })

	manage := func(manager *reconcilers.UpdatingObjectManager[T]) {
		e.Helper()
		e.Eventually(func() error { // controllers of Kubernetes also write it
			e.Must(e.Get(e.Context(), client.ObjectKeyFromObject(actual), actual))
			_, err := manager.Manage(ctx, parent, actual, desired.DeepCopyObject().(T))
			if err != nil && !apierrs.IsConflict(err) {
				e.Fatal(err)
			}
			return err
		})
	}
	fresh := manager()
	manage(fresh)
	manage(fresh) // now it has seen the object
	writes = counting.updates
	if drift == nil {
		return writes, 0
	}
	change(e, actual, drift)
	manage(manager())
	manage(manager())
	return writes, counting.updates - writes
}

type updateCounter struct {
	client.Client
	updates int
}

func (c *updateCounter) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	err := c.Client.Update(ctx, obj, opts...)
	if err == nil {
		c.updates++
	}
	return err
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{"managed": "yes"}}
}

var (
	webLabels   = map[string]string{"app": "web"}
	webSelector = &metav1.LabelSelector{MatchLabels: webLabels}
	claimSpec   = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
	}
)

// podTemplate has some of every part of pods that has defaults.
func podTemplate() corev1.PodTemplateSpec {
	get := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}
	fieldRef := &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: webLabels},
		Spec: corev1.PodSpec{
			ServiceAccountName: "web",
			InitContainers:     []corev1.Container{{Name: "init", Image: "init"}},
			Containers: []corev1.Container{{
				Name: "web", Image: "registry.example:5000/web:1",
				Ports:          []corev1.ContainerPort{{ContainerPort: 80}},
				Env:            []corev1.EnvVar{{Name: "NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: fieldRef}}},
				LivenessProbe:  &corev1.Probe{ProbeHandler: get},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 81}}},
				Lifecycle: &corev1.Lifecycle{
					PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}},
				},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("0.1234567")}},
			}},
			Volumes: []corev1.Volume{
				{Name: "none"},
				{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "web"}}},
				{
					Name: "config",
					VolumeSource: corev1.VolumeSource{
						ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}},
					},
				},
				{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}}},
				{Name: "downward", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
					Items: []corev1.DownwardAPIVolumeFile{{Path: "name", FieldRef: fieldRef}},
				}}},
				{Name: "projected", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
					Sources: []corev1.VolumeProjection{
						{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
					},
				}}},
				{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
					VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimSpec},
				}}},
			},
		},
	}
}

func jobTemplate() corev1.PodTemplateSpec {
	template := podTemplate()
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return template
}

// TestUnseenObjectsAreInSync creates an object of each kind that has defaults. A manager that has not seen it, as after
// a restart, writes nothing; a change by hand is repaired with one write.
func TestUnseenObjectsAreInSync(t *testing.T) {
	e := newEnv(t)
	type counts struct{ Writes, AfterDrift int }
	check := func(kind string, want counts, writes, afterDrift int) {
		t.Helper()
		if diff := cmp.Diff(want, counts{writes, afterDrift}); diff != "" {
			t.Errorf("updates of %s (-want +got):\n%s", kind, diff)
		}
	}
	inSync, repaired := counts{}, counts{AfterDrift: 1}

	w, d := manageNew(e,
		&appsv1.Deployment{
			ObjectMeta: named("web"), Spec: appsv1.DeploymentSpec{Selector: webSelector, Template: podTemplate()},
		},
		func(current, desired *appsv1.Deployment) { current.Labels, current.Spec = desired.Labels, desired.Spec },
		func(d *appsv1.Deployment) { d.Spec.Template.Spec.HostNetwork = true })
	check("Deployment", repaired, w, d)
	w, d = manageNew(e, &appsv1.StatefulSet{ObjectMeta: named("web"), Spec: appsv1.StatefulSetSpec{
		Selector: webSelector, Template: podTemplate(), ServiceName: "web",
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claimSpec}},
	}}, func(
		current, desired *appsv1.StatefulSet,
	) {
		current.Spec = desired.Spec
	}, func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(0)) })
	check("StatefulSet", repaired, w, d)
	w, d = manageNew(e,
		&appsv1.DaemonSet{
			ObjectMeta: named("web"), Spec: appsv1.DaemonSetSpec{Selector: webSelector, Template: podTemplate()},
		},
		func(current, desired *appsv1.DaemonSet) {
			current.Labels, current.Annotations, current.Spec = desired.Labels, desired.Annotations, desired.Spec
		}, func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = webLabels })
	check("DaemonSet", repaired, w, d)
	w, d = manageNew(e,
		&appsv1.ReplicaSet{
			ObjectMeta: named("set"), Spec: appsv1.ReplicaSetSpec{Selector: webSelector, Template: podTemplate()},
		},
		func(
			current, desired *appsv1.ReplicaSet,
		) {
			current.Spec = desired.Spec
		}, func(s *appsv1.ReplicaSet) { s.Spec.MinReadySeconds = 5 })
	check("ReplicaSet", repaired, w, d)
	mergeJob := func(current, desired *batchv1.Job) { current.Labels, current.Spec = desired.Labels, desired.Spec }
	w, d = manageNew(
		e, &batchv1.Job{ObjectMeta: named("job"), Spec: batchv1.JobSpec{Template: jobTemplate()}}, mergeJob, nil,
	)
	check("Job", inSync, w, d)
	w, d = manageNew(
		e, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Spec: batchv1.JobSpec{Template: jobTemplate()}},
		mergeJob, nil,
	)
	check("Job without labels", inSync, w, d)
	w, d = manageNew(e, &batchv1.CronJob{ObjectMeta: named("cron"), Spec: batchv1.CronJobSpec{
		Schedule: "@daily", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: jobTemplate()}},
	}}, func(
		current, desired *batchv1.CronJob,
	) {
		current.Spec = desired.Spec
	}, func(c *batchv1.CronJob) { c.Spec.Suspend = new(true) })
	check("CronJob", repaired, w, d)

	mergeService := func(current, desired *corev1.Service) { current.Labels, current.Spec = desired.Labels, desired.Spec }
	ports := []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "https", Port: 443}}
	for name, spec := range map[string]corev1.ServiceSpec{
		"plain":    {Selector: webLabels, Ports: ports},
		"headless": {Selector: webLabels, Ports: ports, ClusterIP: corev1.ClusterIPNone},
		"node":     {Selector: webLabels, Ports: ports, Type: corev1.ServiceTypeNodePort},
		"balanced": {
			Selector: webLabels, Ports: ports, Type: corev1.ServiceTypeLoadBalancer,
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
		},
	} {
		w, d = manageNew(e, &corev1.Service{ObjectMeta: named(name), Spec: spec}, mergeService,
			func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true })
		check(name+" Service", repaired, w, d)
	}
	w, d = manageNew(e, &corev1.Service{ObjectMeta: named("external"), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeExternalName, ExternalName: "example.com",
	}}, mergeService, nil)
	check("external Service", inSync, w, d)
	w, d = manageNew(e, &corev1.Secret{ObjectMeta: named("secret"), Data: map[string][]byte{"a": []byte("b")}},
		func(current, desired *corev1.Secret) { current.Type, current.Data = desired.Type, desired.Data },
		func(s *corev1.Secret) { s.Data["by"] = []byte("hand") })
	check("Secret", repaired, w, d)
	w, d = manageNew(e, &corev1.PersistentVolumeClaim{ObjectMeta: named("claim"), Spec: claimSpec},
		func(current, desired *corev1.PersistentVolumeClaim) { current.Spec = desired.Spec }, nil)
	check("PersistentVolumeClaim", inSync, w, d)
	copied := *claimSpec.DeepCopy()
	copied.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "claim"}
	w, d = manageNew(e, &corev1.PersistentVolumeClaim{ObjectMeta: named("copy"), Spec: copied},
		func(current, desired *corev1.PersistentVolumeClaim) { current.Spec = desired.Spec }, nil)
	check("PersistentVolumeClaim with a source", inSync, w, d)
	others(e, check, inSync, repaired)
}

func others[C any](e *env, check func(kind string, want C, writes, afterDrift int), inSync, repaired C) {
	w, d := manageNew(e, &networkingv1.NetworkPolicy{ObjectMeta: named("policy"), Spec: networkingv1.NetworkPolicySpec{
		Egress: []networkingv1.NetworkPolicyEgressRule{
			{Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(80))}}},
		},
	}}, func(current, desired *networkingv1.NetworkPolicy) { current.Spec = desired.Spec },
		func(p *networkingv1.NetworkPolicy) { p.Spec.PodSelector = *webSelector })
	check("NetworkPolicy", repaired, w, d)
	w, d = manageNew(e, &networkingv1.Ingress{ObjectMeta: named("ingress"), Spec: networkingv1.IngressSpec{
		DefaultBackend: &networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}},
		},
	}}, func(current, desired *networkingv1.Ingress) { current.Spec = desired.Spec }, func(i *networkingv1.Ingress) {
		i.Spec.IngressClassName = new("by-hand")
	})
	check("Ingress", repaired, w, d)
	target := autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	scaler := autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: target, MaxReplicas: 3, Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleUp: &autoscalingv2.HPAScalingRules{},
		},
	}
	w, d = manageNew(e, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named("scaler"), Spec: scaler},
		func(current, desired *autoscalingv2.HorizontalPodAutoscaler) { current.Spec = desired.Spec },
		func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.MinReplicas = new(int32(2)) })
	check("HorizontalPodAutoscaler", repaired, w, d)
	w, d = manageNew(e, &policyv1.PodDisruptionBudget{ObjectMeta: named("budget"), Spec: policyv1.PodDisruptionBudgetSpec{
		Selector: webSelector, MinAvailable: new(intstr.FromInt32(1)),
	}}, func(current, desired *policyv1.PodDisruptionBudget) { current.Spec = desired.Spec },
		func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow) })
	check("PodDisruptionBudget", repaired, w, d)
	w, d = manageNew(e, &rbacv1.RoleBinding{
		ObjectMeta: named("binding"), RoleRef: rbacv1.RoleRef{
			Kind: "Role", Name: "web",
		}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "u"}},
	}, func(current, desired *rbacv1.RoleBinding) {
		current.RoleRef, current.Subjects = desired.RoleRef, desired.Subjects
	}, func(b *rbacv1.RoleBinding) { b.Subjects = nil })
	check("RoleBinding", repaired, w, d)
	w, d = manageNew(e,
		&discoveryv1.EndpointSlice{
			ObjectMeta: named("slice"), AddressType: discoveryv1.AddressTypeIPv4,
			Ports: []discoveryv1.EndpointPort{{Port: new(int32(80))}},
		},
		func(current, desired *discoveryv1.EndpointSlice) { current.Ports = desired.Ports }, nil)
	check("EndpointSlice", inSync, w, d)
	limits := []corev1.LimitRangeItem{{
		Type: corev1.LimitTypePersistentVolumeClaim, Max: corev1.ResourceList{"storage": resource.MustParse("1Ti")},
	}}
	w, d = manageNew(e, &corev1.LimitRange{ObjectMeta: named("limits"), Spec: corev1.LimitRangeSpec{Limits: limits}},
		func(current, desired *corev1.LimitRange) { current.Spec = desired.Spec }, nil)
	check("LimitRange", inSync, w, d)

	// Objects without a namespace.
	name := e.Namespace
	w, d = manageNew(e, &corev1.Namespace{ObjectMeta: named(name + "-other")},
		func(current, desired *corev1.Namespace) { current.Labels, current.Spec = desired.Labels, desired.Spec }, nil)
	check("Namespace", inSync, w, d)
	w, d = manageNew(e, &schedulingv1.PriorityClass{ObjectMeta: named(name), Value: 7},
		func(current, desired *schedulingv1.PriorityClass) {
			current.PreemptionPolicy = desired.PreemptionPolicy
		}, nil)
	check("PriorityClass", inSync, w, d)
	w, d = manageNew(e, &storagev1.StorageClass{ObjectMeta: named(name), Provisioner: "example.com/none"},
		func(current, desired *storagev1.StorageClass) {
			current.ReclaimPolicy, current.VolumeBindingMode = desired.ReclaimPolicy, desired.VolumeBindingMode
		}, nil)
	check("StorageClass", inSync, w, d)
	sideEffects := admissionv1.SideEffectClassNone
	webhooks := []admissionv1.MutatingWebhook{{
		Name: "a.example.com", SideEffects: &sideEffects, AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionv1.WebhookClientConfig{
			Service: &admissionv1.ServiceReference{Namespace: "default", Name: "web"},
		},
	}}
	w, d = manageNew(e, &admissionv1.MutatingWebhookConfiguration{ObjectMeta: named(name), Webhooks: webhooks},
		func(current, desired *admissionv1.MutatingWebhookConfiguration) { current.Webhooks = desired.Webhooks }, nil)
	check("MutatingWebhookConfiguration", inSync, w, d)
}
