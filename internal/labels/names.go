package labels

import "strings"

// PrometheusName returns a name that Prometheus and the backends with its rules take for a label, once they have
// written its dots as underscores ([Undotted]): other characters than letters, digits, underscores and dots become
// underscores, a digit at the beginning gets one before it, and several underscores or dots at the beginning become one,
// since what begins with two is the backend's own. Names may become equal. "" stays.
func PrometheusName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, name)
	rest := strings.TrimLeft(name, "_.")
	if len(name)-len(rest) > 1 || len(rest) == len(name) && name != "" && name[0] <= '9' {
		return "_" + rest
	}
	return name
}

// Undotted returns a name as these backends keep it: two names that are equal then are one.
func Undotted(name string) string { return strings.ReplaceAll(name, ".", "_") }

// OfKernel reports whether only the kernel's word says an attribute of that name: which process and program it is, what
// that was started with, in whose name and in which container. What a process says of itself there is ignored, also of
// what the receiver does not emit: else a process could pass for another one, or another user's. A name counts as what
// backends with the names of Prometheus keep of it.
func OfKernel(name string) bool {
	name = Undotted(PrometheusName(name))
	switch name {
	case "process_pid", "process_owner", "process_command", "process_command_line", "process_command_args", "container_id", "k8s_pod_uid":
		return true
	}
	for _, group := range [...]string{
		"process_executable_", "process_user_", "process_real_user_", "process_saved_user_", "process_command_",
	} {
		if strings.HasPrefix(name, group) {
			return true
		}
	}
	return false
}
