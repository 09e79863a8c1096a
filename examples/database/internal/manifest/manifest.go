// SPDX-License-Identifier: Apache-2.0

// Package manifest builds the desired objects of a Database. It does not access the cluster.
package manifest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	databasev1 "trueup.dev/examples/database/api/v1"
)

// The keys of the Secret with the credentials, and of the ConfigMap.
const (
	UsernameKey      = "username"
	PasswordKey      = "password"
	ConfigurationKey = "postgresql.conf"
)

const (
	port     = 5432
	portName = "postgresql"
	username = "postgres"
)

// CredentialsName returns the name of the Secret with the password.
func CredentialsName(db *databasev1.Database) string { return db.Name + "-credentials" }

// ConfigurationName returns the name of the ConfigMap with postgresql.conf.
func ConfigurationName(db *databasev1.Database) string { return db.Name + "-config" }

// Endpoint returns the host and port that clients connect to.
func Endpoint(db *databasev1.Database) string {
	return fmt.Sprintf("%s.%s.svc:%d", db.Name, db.Namespace, port)
}

// BackupTarget returns the location of the backups.
func BackupTarget(db *databasev1.Database) string {
	return cmp.Or(db.Spec.Backup.Target, db.DefaultTarget())
}

// Credentials returns the Secret with the password. It is immutable: the API server rejects any other password.
func Credentials(db *databasev1.Database, password string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: meta(db, CredentialsName(db)),
		Immutable:  new(true),
		Data:       map[string][]byte{UsernameKey: []byte(username), PasswordKey: []byte(password)},
	}
}

// Configuration returns the ConfigMap with postgresql.conf.
func Configuration(db *databasev1.Database) *corev1.ConfigMap {
	lines := []string{"listen_addresses = '*'"}
	if db.Spec.TLS != nil {
		lines = append(lines, "ssl = on", "ssl_cert_file = '/tls/tls.crt'", "ssl_key_file = '/tls/tls.key'")
	}
	quote := strings.NewReplacer(`'`, `''`, `\`, `\\`, "\n", `\n`)
	for _, name := range slices.Sorted(maps.Keys(db.Spec.Parameters)) {
		lines = append(lines, fmt.Sprintf("%s = '%s'", name, quote.Replace(db.Spec.Parameters[name])))
	}
	return &corev1.ConfigMap{
		ObjectMeta: meta(db, ConfigurationName(db)),
		Data:       map[string]string{ConfigurationKey: strings.Join(lines, "\n") + "\n"},
	}
}

// Service returns the Service that clients connect to.
func Service(db *databasev1.Database) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: meta(db, db.Name),
		Spec: corev1.ServiceSpec{Selector: Labels(db), Ports: []corev1.ServicePort{{
			Name: portName, Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromString(portName),
		}}},
	}
}

// PodsService returns the Service that gives each server a DNS name, also while it is not ready. A StatefulSet requires
// one.
func PodsService(db *databasev1.Database) *corev1.Service {
	service := Service(db)
	service.Name = db.Name + "-pods"
	service.Spec.ClusterIP = corev1.ClusterIPNone
	service.Spec.PublishNotReadyAddresses = true
	return service
}

// DisruptionBudget returns the PodDisruptionBudget, which prevents node maintenance from stopping more than one server
// at a time.
func DisruptionBudget(db *databasev1.Database) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: meta(db, db.Name),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)),
			Selector:       &metav1.LabelSelector{MatchLabels: Labels(db)},
		},
	}
}

// Labels returns the labels of every child, which also select the pods of the servers.
func Labels(db *databasev1.Database) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "database", databasev1.LabelDatabase: db.Name}
}

// Hash returns a short hash of the content. Do not hash secrets: the hash allows a guess to be verified.
func Hash(content ...any) string {
	data, err := json.Marshal(content)
	if err != nil {
		panic(err) // only for content that JSON cannot represent, such as a function
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

func meta(db *databasev1.Database, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: db.Namespace, Name: name, Labels: Labels(db)}
}
