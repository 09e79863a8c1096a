// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	databasev1 "trueup.dev/examples/database/api/v1"
)

const (
	dataVolume    = "data"
	dataPath      = "/var/lib/postgresql/data"
	postgresGroup = 999
)

// StatefulSet returns the StatefulSet of the servers. The servers restart when the hash changes.
func StatefulSet(db *databasev1.Database, hash string) *appsv1.StatefulSet {
	server := corev1.Container{
		Name:  "server",
		Image: cmp.Or(db.Spec.Image, fmt.Sprintf("postgres:%d", db.Spec.Version)),
		Args:  []string{"-c", "config_file=/config/" + ConfigurationKey},
		Env: []corev1.EnvVar{
			{Name: "PGDATA", Value: dataPath + "/pgdata"},
			{Name: "POSTGRES_USER", ValueFrom: credential(db, UsernameKey)},
			{Name: "POSTGRES_PASSWORD", ValueFrom: credential(db, PasswordKey)},
		},
		Ports: []corev1.ContainerPort{{Name: portName, ContainerPort: port}},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"pg_isready", "--username=" + username}},
		}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: dataVolume, MountPath: dataPath},
			{Name: "config", MountPath: "/config", ReadOnly: true},
		},
	}
	config := &corev1.ConfigMapVolumeSource{}
	config.Name = ConfigurationName(db)
	volumes := []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: config}}}
	if db.Spec.TLS != nil {
		server.VolumeMounts = append(server.VolumeMounts, corev1.VolumeMount{Name: "tls", MountPath: "/tls", ReadOnly: true})
		volumes = append(volumes, corev1.Volume{Name: "tls", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: db.Spec.TLS.SecretName, DefaultMode: new(int32(0o640))},
		}})
	}
	return &appsv1.StatefulSet{
		ObjectMeta: meta(db, db.Name),
		Spec: appsv1.StatefulSetSpec{
			Replicas:    db.Spec.Replicas,
			ServiceName: PodsService(db).Name,
			Selector:    &metav1.LabelSelector{MatchLabels: Labels(db)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      Labels(db),
					Annotations: map[string]string{databasev1.AnnotationConfigHash: hash},
				},
				Spec: corev1.PodSpec{
					SecurityContext: &corev1.PodSecurityContext{FSGroup: new(int64(postgresGroup))},
					Containers:      []corev1.Container{server},
					Volumes:         volumes,
				},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: dataVolume},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: db.Spec.Storage},
					},
				},
			}},
		},
	}
}

// ScheduledBackup returns the CronJob that takes backups.
func ScheduledBackup(db *databasev1.Database) *batchv1.CronJob {
	pod := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyOnFailure,
		Containers: []corev1.Container{{
			Name:  "backup",
			Image: db.Spec.Backup.Image,
			Env: []corev1.EnvVar{
				{Name: "PGHOST", Value: db.Name},
				{Name: "PGUSER", ValueFrom: credential(db, UsernameKey)},
				{Name: "PGPASSWORD", ValueFrom: credential(db, PasswordKey)},
				{Name: "BACKUP_TARGET", Value: BackupTarget(db)},
				{Name: "BACKUP_ACCOUNT", Value: string(db.UID)},
			},
		}},
	}
	return &batchv1.CronJob{
		ObjectMeta: meta(db, db.Name+"-backup"),
		Spec: batchv1.CronJobSpec{
			Schedule:          db.Spec.Backup.Schedule,
			ConcurrencyPolicy: batchv1.ForbidConcurrent,
			JobTemplate:       batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}}},
		},
	}
}

func credential(db *databasev1.Database, key string) *corev1.EnvVarSource {
	ref := &corev1.SecretKeySelector{Key: key}
	ref.Name = CredentialsName(db)
	return &corev1.EnvVarSource{SecretKeyRef: ref}
}
