// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/diff"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Upstream: pkg/apis/core/validation/validation.go: validatePodMetadataAndSpec
func validatePod(p *corev1.Pod) field.ErrorList {
	return validatePodSpec(&p.Spec, specPath, nil)
}

// Upstream: pkg/apis/core/validation/validation.go: ValidatePodTemplateSpec
func validatePodTemplate(
	t *corev1.PodTemplateSpec, at *field.Path, claims []corev1.PersistentVolumeClaim,
) field.ErrorList {
	errs := metavalidation.ValidateLabels(t.Labels, at.Child("labels"))
	return append(errs, validatePodSpec(&t.Spec, at.Child("spec"), claims)...)
}

// validatePodSpec also takes the volume claims that become volumes of the same names.
// Upstream: pkg/apis/core/validation/validation.go: ValidatePodSpec, ValidateVolumes, validateProjectionSources
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
		if v.Projected != nil && spec.ServiceAccountName == "" {
			for j, source := range v.Projected.Sources {
				if source.ServiceAccountToken != nil {
					sourcePath := at.Child("volumes").Index(i).Child("projected", "sources").Index(j)
					problems = append(problems, field.Forbidden(sourcePath.Child("serviceAccountToken"),
						"must not be specified when serviceAccountName is not set"))
				}
			}
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
	return errs
}

// Upstream: pkg/apis/core/validation/validation.go: validateContainers, validateInitContainers, validateContainerCommon
// Upstream: pkg/apis/core/validation/validation.go: ValidateEnv, validatePullPolicy
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
		for j, env := range c.Env {
			name := at.Child("env").Index(j).Child("name")
			if env.Name == "" {
				errs = append(errs, field.Required(name, ""))
			} else {
				errs = append(errs, invalid(name, env.Name, utilvalidation.IsRelaxedEnvVarName(env.Name))...)
			}
		}
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
	spec, before := p.Spec.DeepCopy(), old.Spec.DeepCopy()
	for i := range before.Containers {
		spec.Containers[i].Image = before.Containers[i].Image
	}
	for i := range before.InitContainers {
		spec.InitContainers[i].Image = before.InitContainers[i].Image
	}
	switch deadline, deadlineBefore := spec.ActiveDeadlineSeconds, before.ActiveDeadlineSeconds; {
	case deadline == nil && deadlineBefore != nil:
		errs = append(
			errs,
			field.Invalid(
				specPath.Child("activeDeadlineSeconds"), deadline, "must not update from a positive integer to nil value",
			),
		)
	case deadline != nil && deadlineBefore != nil && *deadline > *deadlineBefore:
		return append(
			errs,
			field.Invalid(specPath.Child("activeDeadlineSeconds"), *deadline, "must be less than or equal to previous value"),
		)
	}
	spec.ActiveDeadlineSeconds = before.ActiveDeadlineSeconds
	spec.SchedulingGates = before.SchedulingGates
	if !hasAll(spec.Tolerations, before.Tolerations) {
		errs = append(
			errs,
			field.Forbidden(
				specPath.Child("tolerations"), "existing toleration can not be modified except its tolerationSeconds",
			),
		)
	}
	if spec.Tolerations = before.Tolerations; !equality.Semantic.DeepEqual(spec, before) {
		errs = append(
			errs,
			field.Forbidden(
				specPath, "pod updates may not change fields other than "+updatableFields+"\n"+diff.Diff(*before, *spec),
			),
		)
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
