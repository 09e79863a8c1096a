// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/apis"
)

// DatabaseSpec is the desired state of a Database.
type DatabaseSpec struct {
	// Version is the major version of PostgreSQL. It cannot be lowered. When it is raised, the servers restart with the
	// new image, which must upgrade the data.
	//
	// +optional
	// +kubebuilder:default=18
	// +kubebuilder:validation:Minimum=14
	// +kubebuilder:validation:Maximum=99
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="a database cannot go back to an older version"
	Version int32 `json:"version,omitempty"`

	// Image is the image of the servers. It must accept the environment variables of the official image. The default is
	// postgres:<version>.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// Replicas is the number of servers.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9
	Replicas *int32 `json:"replicas,omitempty"`

	// Storage is the size of the volume of each server. A later change is rejected and reported in the condition
	// StatefulSetReady.
	Storage resource.Quantity `json:"storage"`

	// Parameters are lines of postgresql.conf.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	// +kubebuilder:validation:XValidation:rule="self.all(name, !(name in ['data_directory', 'port', 'ssl', 'ssl_cert_file', 'ssl_key_file']))",message="data_directory, port and ssl* are set by the controller"
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-z_]+([.][a-z_]+)?$'))",message="names have only lower-case letters and underscores, such as max_connections"
	Parameters map[string]string `json:"parameters,omitempty"`

	// TLS enables encrypted connections.
	//
	// +optional
	TLS *TLS `json:"tls,omitempty"`

	// Backup configures scheduled backups and the final backup, which is taken before a Database is deleted. If it is
	// not set, no backups are taken.
	//
	// +optional
	Backup *Backup `json:"backup,omitempty"`
}

// TLS refers to the certificate.
type TLS struct {
	// SecretName is the name of a Secret of type kubernetes.io/tls in the namespace of the Database. The Database does
	// not own it. When its certificate changes, the servers restart one after the other.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
}

// Backup configures when backups are taken and where they are stored.
type Backup struct {
	// Schedule of the backups in the syntax of a CronJob. If it is empty, only the final backup is taken.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=100
	Schedule string `json:"schedule,omitempty"`

	// Image is the image of the scheduled backups. The server is in PGHOST, PGUSER and PGPASSWORD, the target of the
	// backup in BACKUP_TARGET, and the account of the backup system in BACKUP_ACCOUNT.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image"`

	// Target is the location of the backups. The default is backups/<namespace>/<name>.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Target string `json:"target,omitempty"`
}

// DatabaseStatus is the observed state of a Database.
type DatabaseStatus struct {
	apis.Status `json:",inline"`

	// Endpoint is the host and port that clients connect to.
	//
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// SecretName is the name of the Secret with the keys username and password.
	//
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// ReadyReplicas is the number of servers that are ready.
	//
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
}

// Database is a PostgreSQL database: servers with one volume each, a password, a configuration and backups.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=db
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 40",message="metadata.name must start with a letter, have only lower-case letters, digits and dashes, and at most 40 of them: it names Services and a CronJob"
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DatabaseSpec `json:"spec"`

	// +optional
	Status DatabaseStatus `json:"status,omitempty"`
}

// DatabaseList is a list of Databases.
//
// +kubebuilder:object:root=true
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Database `json:"items"`
}
