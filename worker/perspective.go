package worker

type goPerspective struct{ version int }
