// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/diff"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validatePod validates more than templates of pods must fulfill.
// Upstream: pkg/apis/core/validation/validation.go: validatePodMetadataAndSpec, validateContainerOnlyForPod
func validatePod(p *corev1.Pod) field.ErrorList {
	errs := validatePodSpec(&p.Spec, specPath, nil)
	for i, v := range p.Spec.Volumes {
		if v.Projected == nil || p.Spec.ServiceAccountName != "" {
			continue
		}
		for j, source := range v.Projected.Sources {
			if source.ServiceAccountToken != nil {
				at := specPath.Child("volumes").Index(i).Child("projected", "sources").Index(j)
				errs = append(errs, field.Forbidden(at.Child("serviceAccountToken"),
					"must not be specified when serviceAccountName is not set"))
			}
		}
	}
	errs = append(errs, validateImages(p.Spec.Containers, specPath.Child("containers"))...)
	return append(errs, validateImages(p.Spec.InitContainers, specPath.Child("initContainers"))...)
}

// Upstream: pkg/apis/core/validation/validation.go: validateContainerOnlyForPod, ValidateContainerUpdates
func validateImages(containers []corev1.Container, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range containers {
		if image := containers[i].Image; strings.TrimSpace(image) != image {
			errs = append(errs, field.Invalid(
				at.Index(i).Child("image"), image, "must not have leading or trailing whitespace"))
		}
	}
	return errs
}

// Upstream: pkg/apis/core/validation/validation.go: ValidatePodTemplateSpec
func validatePodTemplate(
	t *corev1.PodTemplateSpec, at *field.Path, claims []corev1.PersistentVolumeClaim,
) field.ErrorList {
	errs := metavalidation.ValidateLabels(t.Labels, at.Child("labels"))
	return append(errs, validatePodSpec(&t.Spec, at.Child("spec"), claims)...)
}

// validatePodSpec also takes the volume claims that become volumes of the same names.
// Upstream: pkg/apis/core/validation/validation.go: ValidatePodSpec, ValidateVolumes
// Upstream: pkg/apis/core/validation/validation.go: validateRestartPolicy, validateDNSPolicy
func validatePodSpec(spec *corev1.PodSpec, at *field.Path, claims []corev1.PersistentVolumeClaim) field.ErrorList {
	var errs field.ErrorList
	volumes := map[string]bool{}
	for _, claim := range claims {
		volumes[claim.Name] = true
	}
	for i, v := range spec.Volumes {
		name := at.Child("volumes").Index(i).Child("name")
		problems := dnsLabel(v.Name, name)
		if volumes[v.Name] && len(claims) == 0 {
			problems = append(problems, field.Duplicate(name, v.Name))
		}
		if errs = append(errs, problems...); len(problems) == 0 {
			volumes[v.Name] = true
		}
	}
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(at.Child("containers"), ""))
	}
	names := map[string]bool{}
	errs = append(errs, validateContainers(spec.Containers, at.Child("containers"), names, volumes)...)
	errs = append(errs, validateContainers(spec.InitContainers, at.Child("initContainers"), names, volumes)...)
	errs = append(
		errs,
		oneOf(
			at.Child("restartPolicy"), spec.RestartPolicy, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure,
			corev1.RestartPolicyNever,
		)...,
	)
	errs = append(errs, oneOf(at.Child("dnsPolicy"), spec.DNSPolicy,
		corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone)...)
	errs = append(errs, metavalidation.ValidateLabels(spec.NodeSelector, at.Child("nodeSelector"))...)
	if name := spec.ServiceAccountName; name != "" {
		errs = append(errs, invalid(at.Child("serviceAccountName"), name, utilvalidation.IsDNS1123Subdomain(name))...)
	}
	if deadline := spec.ActiveDeadlineSeconds; deadline != nil && (*deadline < 1 || *deadline > math.MaxInt32) {
		errs = append(errs, field.Invalid(
			at.Child("activeDeadlineSeconds"), *deadline, utilvalidation.InclusiveRangeError(1, math.MaxInt32)))
	}
	return errs
}

// Upstream: pkg/apis/core/validation/validation.go: validateContainers, validateInitContainers, validateContainerCommon
// Upstream: pkg/apis/core/validation/validation.go: validatePullPolicy
func validateContainers(containers []corev1.Container, at *field.Path, names, volumes map[string]bool) field.ErrorList {
	var errs field.ErrorList
	for i := range containers {
		c, at := &containers[i], at.Index(i)
		errs = append(errs, dnsLabel(c.Name, at.Child("name"))...)
		if c.Image == "" {
			errs = append(errs, field.Required(at.Child("image"), ""))
		}
		errs = append(errs, oneOf(at.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
			corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
		errs = append(errs, validateContainerPorts(c.Ports, at.Child("ports"))...)
		errs = append(errs, validateEnv(c.Env, at.Child("env"))...)
		errs = append(errs, validateMounts(c.VolumeMounts, volumes, at.Child("volumeMounts"))...)
		errs = append(
			errs,
			oneOf(
				at.Child("imagePullPolicy"), c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever,
			)...,
		)
		errs = append(errs, validateResources(&c.Resources, at.Child("resources"))...)
		if names[c.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
		}
		names[c.Name] = true
	}
	return errs
}

// validateEnv does not validate the sources of values.
// Upstream: pkg/apis/core/validation/validation.go: ValidateEnv, validateEnvVarValueFrom
func validateEnv(variables []corev1.EnvVar, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, env := range variables {
		name, from := at.Index(i).Child("name"), at.Index(i).Child("valueFrom")
		if env.Name == "" {
			errs = append(errs, field.Required(name, ""))
		} else {
			errs = append(errs, invalid(name, env.Name, utilvalidation.IsRelaxedEnvVarName(env.Name))...)
		}
		v := env.ValueFrom
		if v == nil {
			continue
		}
		sources := 0
		for _, set := range []bool{
			v.FieldRef != nil, v.ResourceFieldRef != nil, v.ConfigMapKeyRef != nil, v.SecretKeyRef != nil, v.FileKeyRef != nil,
		} {
			if set {
				sources++
			}
		}
		switch {
		case sources == 0:
			errs = append(errs, field.Invalid(from, "", "must specify one of: `fieldRef`, `resourceFieldRef`, "+
				"`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
		case env.Value != "":
			errs = append(errs, field.Invalid(from, "", "may not be specified when `value` is not empty"))
		case sources > 1:
			errs = append(errs, field.Invalid(from, "", "may not have more than one field specified at a time"))
		}
	}
	return errs
}

// Upstream: pkg/apis/core/validation/validation.go: validateContainerPorts
func validateContainerPorts(ports []corev1.ContainerPort, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i, port := range ports {
		at := at.Index(i)
		if port.Name != "" {
			problems := invalid(at.Child("name"), port.Name, utilvalidation.IsValidPortName(port.Name))
			if len(problems) == 0 && names[port.Name] {
				problems = append(problems, field.Duplicate(at.Child("name"), port.Name))
			}
			errs, names[port.Name] = append(errs, problems...), true
		}
		if port.ContainerPort == 0 {
			errs = append(errs, field.Required(at.Child("containerPort"), ""))
		} else {
			errs = append(
				errs,
				invalid(at.Child("containerPort"), port.ContainerPort, utilvalidation.IsValidPortNum(int(port.ContainerPort)))...,
			)
		}
		if port.HostPort != 0 {
			errs = append(
				errs, invalid(at.Child("hostPort"), port.HostPort, utilvalidation.IsValidPortNum(int(port.HostPort)))...,
			)
		}
		errs = append(
			errs, oneOf(at.Child("protocol"), port.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...,
		)
	}
	return errs
}

// Upstream: pkg/apis/core/validation/validation.go: ValidateVolumeMounts, IsMatchedVolume
func validateMounts(mounts []corev1.VolumeMount, volumes map[string]bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	paths := map[string]bool{}
	for i, mount := range mounts {
		at := at.Index(i)
		if mount.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		}
		if !volumes[mount.Name] {
			errs = append(errs, field.NotFound(at.Child("name"), mount.Name))
		}
		if mount.MountPath == "" {
			errs = append(errs, field.Required(at.Child("mountPath"), ""))
		}
		if paths[mount.MountPath] {
			errs = append(errs, field.Invalid(at.Child("mountPath"), mount.MountPath, "must be unique"))
		}
		paths[mount.MountPath] = true
	}
	return errs
}

// Upstream: pkg/apis/core/validation/validation.go: validateResourceRequirements
func validateResources(r *corev1.ResourceRequirements, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[name]
		if limit, ok := r.Limits[name]; ok && request.Cmp(limit) > 0 {
			errs = append(
				errs,
				field.Invalid(
					at.Child("requests"), request.String(), "must be less than or equal to "+string(name)+" limit of "+limit.String(),
				),
			)
		}
	}
	return errs
}

// updatableFields are the mutable fields in the spec of a pod, as the error about the other fields prints them.
var updatableFields = strings.Join([]string{
	"`spec.containers[*].image`", "`spec.initContainers[*].image`", "`spec.activeDeadlineSeconds`",
	"`spec.tolerations` (only additions to existing tolerations)",
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
}, ",")

// Upstream: pkg/apis/core/validation/validation.go: ValidatePodUpdate, ValidateContainerUpdates
func validatePodUpdate(p, old *corev1.Pod) field.ErrorList {
	for _, lists := range []struct {
		name        string
		new, before []corev1.Container
	}{
		{"containers", p.Spec.Containers, old.Spec.Containers},
		{"initContainers", p.Spec.InitContainers, old.Spec.InitContainers},
	} {
		if len(lists.new) != len(lists.before) {
			return field.ErrorList{field.Forbidden(specPath.Child(lists.name), "pod updates may not add or remove containers")}
		}
	}
	if equality.Semantic.DeepEqual(&p.Spec, &old.Spec) {
		return nil
	}
	var errs field.ErrorList
	switch deadline, before := p.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds; {
	case deadline == nil && before != nil:
		errs = append(
			errs,
			field.Invalid(
				specPath.Child("activeDeadlineSeconds"), deadline, "must not update from a positive integer to nil value",
			),
		)
	case deadline != nil && (*deadline < 0 || *deadline > math.MaxInt32):
		return append(errs, field.Invalid(
			specPath.Child("activeDeadlineSeconds"), *deadline, utilvalidation.InclusiveRangeError(0, math.MaxInt32)))
	case deadline != nil && before != nil && *deadline > *before:
		return append(
			errs,
			field.Invalid(specPath.Child("activeDeadlineSeconds"), *deadline, "must be less than or equal to previous value"),
		)
	}
	if !hasAll(p.Spec.Tolerations, old.Spec.Tolerations) {
		errs = append(
			errs,
			field.Forbidden(
				specPath.Child("tolerations"), "existing toleration can not be modified except its tolerationSeconds",
			),
		)
	}
	errs = append(errs, validateGates(p.Spec.SchedulingGates, old.Spec.SchedulingGates)...)
	spec, before := p.Spec.DeepCopy(), old.Spec.DeepCopy()
	for i := range before.Containers {
		spec.Containers[i].Image = before.Containers[i].Image
	}
	for i := range before.InitContainers {
		spec.InitContainers[i].Image = before.InitContainers[i].Image
	}
	spec.ActiveDeadlineSeconds, spec.SchedulingGates = before.ActiveDeadlineSeconds, before.SchedulingGates
	spec.Tolerations = before.Tolerations
	if len(before.SchedulingGates) > 0 {
		errs = append(errs, validateGatedPod(spec, before)...)
	}
	if !equality.Semantic.DeepEqual(spec, before) {
		errs = append(
			errs,
			field.Forbidden(
				specPath, "pod updates may not change fields other than "+updatableFields+"\n"+diff.Diff(*before, *spec),
			),
		)
	}
	return errs
}

// Upstream: pkg/apis/core/validation/validation.go: validateOnlyDeletedSchedulingGates
func validateGates(gates, before []corev1.PodSchedulingGate) field.ErrorList {
	var errs field.ErrorList
	for i, gate := range gates {
		if !slices.Contains(before, gate) {
			errs = append(errs, field.Forbidden(specPath.Child("schedulingGates").Index(i).Child("name"),
				"only deletion is allowed, but found new scheduling gate '"+gate.Name+"'"))
		}
	}
	return errs
}

// validateGatedPod allows the node selector and node affinity of a pod that is not scheduled yet to become stricter. It
// sets both to the old values. Of the changes of a node affinity with required terms, it allows only changes of
// preferred ones.
// Upstream: pkg/apis/core/validation/validation.go: ValidatePodUpdate, validateNodeSelectorMutation
// Upstream: pkg/apis/core/validation/validation.go: validateNodeAffinityMutation
func validateGatedPod(spec, before *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	for name, value := range before.NodeSelector {
		if got, ok := spec.NodeSelector[name]; !ok || got != value {
			errs = append(errs, field.Invalid(specPath.Child("nodeSelector"), spec.NodeSelector,
				"only additions to spec.nodeSelector are allowed (no mutations or deletions)"))
			break
		}
	}
	spec.NodeSelector = before.NodeSelector
	affinity, affinityBefore := &corev1.Affinity{}, &corev1.Affinity{}
	if spec.Affinity != nil {
		affinity = spec.Affinity
	}
	if before.Affinity != nil {
		affinityBefore = before.Affinity
	}
	if node := affinityBefore.NodeAffinity; node != nil && node.RequiredDuringSchedulingIgnoredDuringExecution != nil &&
		(affinity.NodeAffinity == nil || !equality.Semantic.DeepEqual(
			affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			node.RequiredDuringSchedulingIgnoredDuringExecution)) {
		return errs
	}
	if affinity.NodeAffinity = affinityBefore.NodeAffinity; equality.Semantic.DeepEqual(affinity, affinityBefore) {
		spec.Affinity = before.Affinity
	}
	return errs
}

// Upstream: pkg/apis/core/validation/validation.go: validateOnlyAddedTolerations
func hasAll(tolerations, before []corev1.Toleration) bool {
	for i := range before {
		found := false
		for j := range tolerations {
			found = found || tolerations[j].MatchToleration(&before[i])
		}
		if !found {
			return false
		}
	}
	return true
}
