// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"trueup.dev/internal/defaults"
)

// deployments also count changes of annotations, because their replica sets get them.
var deployments = strategyOf[*appsv1.Deployment]{
	defaults: defaults.Deployment,
	// Upstream: pkg/registry/apps/deployment/strategy.go: deploymentStrategy.PrepareForUpdate
	changed: func(d, old *appsv1.Deployment) bool {
		return !equal(reflect.ValueOf(&d.Spec).Elem(), reflect.ValueOf(&old.Spec).Elem()) ||
			!maps.Equal(d.Annotations, old.Annotations)
	},
	// Upstream: pkg/registry/apps/deployment/strategy.go: deploymentStatusStrategy.PrepareForUpdate
	updateStatus:         func(d, old *appsv1.Deployment) { d.Labels = old.Labels },
	validate:             validateDeployment,
	validateUpdate:       validateDeploymentUpdate,
	validateStatusUpdate: validateDeploymentStatus,
}

var (
	replicaSets = strategyOf[*appsv1.ReplicaSet]{
		defaults: defaults.ReplicaSet, validate: validateReplicaSet, validateUpdate: validateReplicaSetUpdate,
		validateStatusUpdate: validateReplicaSetStatus,
	}
	statefulSets = strategyOf[*appsv1.StatefulSet]{
		defaults: defaults.StatefulSet, validate: validateNewStatefulSet, replaceValidate: true,
		validateUpdate:       validateStatefulSetUpdate,
		validateStatusUpdate: validateStatefulSetStatus, statusFirst: true,
	}
	jobs = strategyOf[*batchv1.Job]{
		defaults: defaults.Job, create: defaults.GenerateJob, validate: validateJob, replaceValidate: true,
		validateUpdate: validateJobUpdate, validateStatusUpdate: validateJobStatus,
	}
	cronJobs = strategyOf[*batchv1.CronJob]{
		defaults: defaults.CronJob, validate: validateNewCronJob, replaceValidate: true,
		// Upstream: pkg/apis/batch/validation/validation.go: ValidateCronJobUpdate
		validateUpdate: func(c, _ *batchv1.CronJob) field.ErrorList { return validateCronJob(c) },
	}
	replicationControllers = strategyOf[*corev1.ReplicationController]{
		defaults: defaults.ReplicationController, validateStatusUpdate: validateReplicationControllerStatus,
	}
	podTemplates = strategyOf[*corev1.PodTemplate]{
		// Upstream: pkg/apis/core/v1/zz_generated.defaults.go: SetObjectDefaults_PodTemplate
		defaults: func(t *corev1.PodTemplate) { defaults.PodSpec(&t.Template.Spec) },
	}
)

// daemonSets count changes of their template in an annotation.
var daemonSets = strategyOf[*appsv1.DaemonSet]{
	defaults: defaults.DaemonSet,
	// Upstream: pkg/registry/apps/daemonset/strategy.go: daemonSetStrategy.PrepareForCreate
	create: func(d *appsv1.DaemonSet) {
		if n, err := strconv.ParseInt(d.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64); err != nil || n < 1 {
			d.Annotations = maps.Clone(d.Annotations)
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, appsv1.DeprecatedTemplateGeneration, "1")
		}
	},
	// Upstream: pkg/registry/apps/daemonset/strategy.go: daemonSetStrategy.PrepareForUpdate
	update: func(d, old *appsv1.DaemonSet) {
		n, _ := strconv.ParseInt(old.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
		if !equal(reflect.ValueOf(&d.Spec.Template).Elem(), reflect.ValueOf(&old.Spec.Template).Elem()) {
			n++
		}
		d.Annotations = maps.Clone(d.Annotations)
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, appsv1.DeprecatedTemplateGeneration, strconv.FormatInt(n, 10))
	},
	validate:             validateDaemonSet,
	validateUpdate:       validateDaemonSetUpdate,
	validateStatusUpdate: validateDaemonSetStatus,
}

var pods = strategyOf[*corev1.Pod]{
	defaults:       defaults.Pod,
	validate:       validatePod,
	validateUpdate: validatePodUpdate,
	// Upstream: pkg/registry/core/pod/strategy.go: podStrategy.PrepareForCreate, applySchedulingGatedCondition
	create: func(p *corev1.Pod) {
		admitPod(&p.Spec)
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qualityOf(p)}
		if len(p.Spec.SchedulingGates) > 0 {
			p.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
				LastTransitionTime: metav1.Now(),
				Message:            "Scheduling is blocked due to non-empty scheduling gates",
			}}
		}
	},
	// Upstream: pkg/registry/core/pod/strategy.go: podStrategy.PrepareForUpdate
	update: func(p, old *corev1.Pod) {
		p.Spec.Priority = old.Spec.Priority
		if p.Spec.PreemptionPolicy == nil {
			p.Spec.PreemptionPolicy = old.Spec.PreemptionPolicy
		}
		admitPod(&p.Spec)
	},
	// Upstream: pkg/registry/core/pod/strategy.go: podStatusStrategy.PrepareForUpdate, preserveOldObservedGeneration
	updateStatus: func(p, old *corev1.Pod) {
		p.DeletionTimestamp, p.OwnerReferences = old.DeletionTimestamp, old.OwnerReferences
		defaults.Set(&p.Status.QOSClass, old.Status.QOSClass)
		defaults.Set(&p.Status.ObservedGeneration, old.Status.ObservedGeneration)
		p.Status.Conditions = slices.Clone(p.Status.Conditions)
		for i := range p.Status.Conditions {
			c := &p.Status.Conditions[i]
			for _, before := range old.Status.Conditions {
				if before.Type == c.Type {
					defaults.Set(&c.ObservedGeneration, before.ObservedGeneration)
					break
				}
			}
		}
	},
}

// admitPod applies the admission plugins that are enabled by default: pods get a priority and tolerations for nodes
// that are not ready.
// Upstream: plugin/pkg/admission/priority/admission.go: Plugin.admitPod
// Upstream: plugin/pkg/admission/defaulttolerationseconds/admission.go: Plugin.Admit
func admitPod(spec *corev1.PodSpec) {
	if spec.PriorityClassName == "" {
		defaults.SetPointer(&spec.Priority, 0)
		defaults.SetPointer(&spec.PreemptionPolicy, corev1.PreemptLowerPriority)
	}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		}) {
			spec.Tolerations = append(slices.Clone(spec.Tolerations), corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: new(int64(300)),
			})
		}
	}
}

// qualityOf returns the quality of service class of a pod.
// Upstream: pkg/apis/core/helper/qos/qos.go: ComputePodQOS
func qualityOf(p *corev1.Pod) corev1.PodQOSClass {
	if r := p.Spec.Resources; r != nil {
		return qualityOfRequests(r)
	}
	quality := corev1.PodQOSClass("")
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			q := qualityOfRequests(&containers[i].Resources)
			if q == corev1.PodQOSBurstable || quality != "" && quality != q {
				return corev1.PodQOSBurstable
			}
			quality = q
		}
	}
	defaults.Set(&quality, corev1.PodQOSBestEffort)
	return quality
}

// Upstream: pkg/apis/core/helper/qos/qos.go: requirementsQOS, resourceQOS
func qualityOfRequests(r *corev1.ResourceRequirements) corev1.PodQOSClass {
	requested, guaranteed := false, true
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, limit := r.Requests[name], r.Limits[name]
		requested = requested || !request.IsZero() || !limit.IsZero()
		guaranteed = guaranteed && !limit.IsZero() && request.Cmp(limit) == 0
	}
	switch {
	case !requested:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}
